//! One random run, from its first record to its last, with random faults.
//!
//! `theme` chooses what the run is mostly about, `fault_targets` where faults hit.

mod fault_targets;
mod theme;

use raymond_core::budget::Micros;
use raymond_core::decide::Refusal;
use raymond_core::ids::AgentId;
use raymond_core::run::stop::StopMode;
use raymond_core::run::{Ending, Input, Phase};
use raymond_core::time::Span;

use crate::dice::Dice;

use super::coverage::Coverage;
use super::host::{Host, Seeds, Ticked};
use super::random_workflow::RandomWorkflow;
use crate::violation::Violation;
use theme::Theme;

/// More steps than any of these runs needs; a run that takes more does not end.
const MAX_STEPS: u32 = 6_000;
/// After this many resumes, a failed run counts as ended.
const MAX_RESUMES: u32 = 2;
/// The number of stop requests to one run.
const MAX_STOPS: u32 = 5;
/// The number of requests to cancel one agent.
const MAX_CANCELLATIONS: u32 = 3;
/// The number of clock jumps in one run.
const MAX_JUMPS: u32 = 6;
/// The number of faults in one run, so that every run can end.
const MAX_FAULTS: u32 = 16;

/// Simulates the run of a seed, and returns its coverage.
pub fn simulate(seed: u64) -> Result<Coverage, Violation> {
    let (mut scenario, mut host) = Scenario::new(seed)?;
    scenario.run(&mut host)?;
    let mut coverage = std::mem::take(&mut host.world.borrow_mut().coverage);
    coverage.faults = host.faults.counts();
    Ok(coverage)
}

/// Simulates the run of a seed, and returns the machine.
pub fn machine(seed: u64) -> Result<Host, Violation> {
    let (mut scenario, mut host) = Scenario::new(seed)?;
    scenario.run(&mut host)?;
    Ok(host)
}

/// Simulates the run of a seed, and also returns a trace of it.
pub fn simulate_with_trace(seed: u64) -> (Vec<String>, Result<(), Violation>) {
    let (mut scenario, mut host) = match Scenario::new(seed) {
        Ok(ready) => ready,
        Err(violation) => return (Vec::new(), Err(violation)),
    };
    host.world.borrow_mut().trace.enable();
    let ended = scenario.run(&mut host);
    let lines = host.world.borrow_mut().trace.take_lines();
    (lines, ended)
}

struct Scenario {
    dice: Dice,
    theme: Theme,
    workflow: RandomWorkflow,
    resumes: u32,
    stops: u32,
    cancellations: u32,
    faults: u32,
    jumps: u32,
    top_ups: u32,
}

impl Scenario {
    fn new(seed: u64) -> Result<(Self, Host), Violation> {
        let mut dice = Dice::new(seed);
        let theme = Theme::pick(&mut dice);
        let workflow = RandomWorkflow::random(&mut dice);
        let random_agents = theme.random_agents(seed, &workflow, &mut dice);
        let settings = theme.settings(&mut dice);
        // One seed for everything, because a failing run is reproduced by this number alone.
        let seeds = Seeds { world: seed, disk: seed };
        let mut host = Host::new(seeds, workflow.definition()?, Box::new(random_agents), settings)?;
        host.leftovers = theme.leftovers();
        let (resumes, stops, cancellations, faults, jumps, top_ups) = (0, 0, 0, 0, 0, 0);
        let scenario =
            Self { dice, theme, workflow, resumes, stops, cancellations, faults, jumps, top_ups };
        Ok((scenario, host))
    }

    fn run(&mut self, host: &mut Host) -> Result<(), Violation> {
        for _ in 0..MAX_STEPS {
            if self.step(host)? {
                // Before the replay, because it resumes the run once more and must add no record.
                check_stays_over(host)?;
                return host.sample_replay();
            }
        }
        Err(Violation(format!("the run does not end: {:?}", host.phase())))
    }

    /// Runs one random action, and returns whether the run is over.
    fn step(&mut self, host: &mut Host) -> Result<bool, Violation> {
        let Conditions { has_wait, is_stopping, has_adopted } = Conditions::of(host);
        // Adopted clients are rare, so faults hit more often while one runs.
        let extra = if has_adopted { 10 } else { 0 };
        if self.dice.percent(self.theme.fault_percent() + extra) {
            self.inject_anywhere(host);
        }
        // Kills count as faults. Otherwise a run whose owner dies all the time would never end.
        if host.is_up() && self.dice.percent(self.theme.kill_percent()) && self.may_arm() {
            // `go_down` without a fault cuts the power in half of the cases, which also ends all
            // clients.
            if self.spares_clients() { host.kill() } else { host.go_down() }
        }
        if !host.is_up() {
            return self.boot_or_resume(host);
        }
        // The rare actions have small chances, because a run needs dozens of ordinary steps. While
        // a stop or an adopted client makes an action interesting, its range is wider.
        match self.dice.below(100) {
            0 | 1 => self.request_stop(host)?,
            // A second request during a stop, and a request to a run with an adopted client, are
            // situations that the table demands.
            2..=13 if is_stopping || has_adopted => self.request_stop(host)?,
            14 | 15 => self.jump(host),
            // A jump of the clock matters only while something waits for a time.
            16..=21 if has_wait => self.jump(host),
            22 => host.try_second_owner()?,
            23 | 24 => host.poll_inbox()?,
            25 => self.cancel_agent(host)?,
            26..=30 => {
                self.inject_into_record(host, 20);
                host.answer()?;
            }
            _ => self.advance(host)?,
        }
        Ok(false)
    }

    /// Lets the clock jump.
    fn jump(&mut self, host: &Host) {
        self.jumps += 1;
        if self.jumps > MAX_JUMPS {
            return;
        }
        if self.dice.percent(50) {
            // Shorter and longer than the waits, which take from two seconds to 40 minutes.
            host.sleep(Span::minutes(*self.dice.pick(&[1, 14, 60, 480])));
        } else {
            // The last value is 46 days, more than the 31 days for which a resume accepts a usage
            // limit.
            host.set_back(Span::seconds(*self.dice.pick(&[1, 10, 600, 5_400, 4_000_000])));
        }
    }

    /// Posts a stop request, perhaps with a key that was used before. The owner may notice it only
    /// later.
    fn request_stop(&mut self, host: &mut Host) -> Result<(), Violation> {
        if self.stops >= MAX_STOPS {
            return Ok(());
        }
        let (mode, key) = self.next_request();
        host.post(mode, &key)?;
        if self.dice.percent(70) {
            // A cancelled run has ended for good, so each run can meet a fault in this record only
            // once.
            let chance = if mode == StopMode::Cancel { 80 } else { 50 };
            self.inject_into_record(host, chance);
            host.poll_inbox()?;
            // A process that waits for the answer may repeat its request.
            if self.dice.percent(30) && host.is_up() {
                host.post(mode, &key)?;
                host.poll_inbox()?;
            }
        }
        Ok(())
    }

    /// Cancels a random agent, as a user may at any time.
    fn cancel_agent(&mut self, host: &mut Host) -> Result<(), Violation> {
        let agents: Vec<AgentId> = host.world.borrow().last.agents.keys().cloned().collect();
        if self.cancellations >= MAX_CANCELLATIONS || agents.is_empty() {
            return Ok(());
        }
        self.cancellations += 1;
        let (agent, key) =
            (self.dice.pick(&agents).clone(), format!("agent-{}", self.cancellations));
        self.inject_into_record(host, 50);
        let verdicts =
            host.handle(vec![Input::CancelAgent { agent, by: "ada".to_owned(), key }])?;
        match verdicts.as_slice() {
            // Empty if the machine went down.
            [] | [Ok(()) | Err(Refusal::OnlyWorkers(_) | Refusal::Ended(_))] => Ok(()),
            other => Err(Violation(format!("an agent cannot be cancelled: {other:?}"))),
        }
    }

    fn next_request(&mut self) -> (StopMode, String) {
        self.stops += 1;
        let modes = [StopMode::AfterTurn, StopMode::Now, StopMode::Now, StopMode::Cancel];
        let stops = u64::from(self.stops);
        // Sometimes the key of an earlier request, which must change nothing.
        let number = if self.dice.percent(35) { 1 + self.dice.below(stops) } else { stops };
        (*self.dice.pick(&modes), format!("key-{number}"))
    }

    /// Boots or resumes the run, and returns whether there is nothing to resume.
    fn boot_or_resume(&mut self, host: &mut Host) -> Result<bool, Violation> {
        match host.phase() {
            Phase::Unborn => self.inject_into_boot(host, 20),
            Phase::Open | Phase::Stopping(_) => {
                // Clients continue meanwhile, so the downtime decides whether they are found
                // running or finished.
                host.wait(Span(*self.dice.pick(self.theme.downtimes())));
                self.lower_cap(host);
                self.inject_into_recovery(host);
            }
            Phase::Ended(Ending::Completed | Ending::Cancelled) => return Ok(true),
            Phase::Ended(Ending::Failed) => {
                self.resumes += 1;
                // A run that failed with too many agents would fail again in the same way.
                host.settings.max_agents = 1_000;
                // The same agents give the same replies, so many failures would repeat in every
                // further resume.
                if self.resumes > MAX_RESUMES {
                    return Ok(true);
                }
                self.edit(host);
                if self.dice.percent(30) {
                    self.inject_into_recovery(host);
                } else {
                    self.inject_into_boot(host, 40);
                }
            }
            Phase::Ended(Ending::OverBudget) => {
                self.top_up(host);
                self.inject_into_boot(host, 20);
            }
            Phase::Ended(Ending::Stopped | Ending::NeedsCaller) => self.lower_cap(host),
            Phase::Ended(Ending::NeedsPerson | Ending::Environment) => {
                host.wait(Span::minutes(self.dice.below(40)));
                self.inject_into_boot(host, 20);
            }
            Phase::Ended(Ending::NoQuota | Ending::Sleeping) => {
                host.wait(Span::minutes(self.dice.below(60)));
            }
        }
        if self.stop_without_owner(host)? {
            return Ok(false);
        }
        // A question can be answered in any phase, and nothing else helps a run that needs it.
        let answers = if host.phase() == Phase::Ended(Ending::NeedsPerson) { 80 } else { 20 };
        if matches!(host.phase(), Phase::Ended(_)) && self.dice.percent(answers) {
            host.answer()?;
            if host.is_up() {
                return Ok(false);
            }
        }
        host.boot()?;
        Ok(false)
    }

    /// Sets a new cap, which may already be spent.
    fn top_up(&mut self, host: &mut Host) {
        self.top_ups += 1;
        let spent = host.world.borrow().last.spent;
        host.settings.budget = match self.top_ups {
            // First too little, around the least share of 50,000. Later enough, so that the run can
            // end.
            ..=4 => Some(spent.plus(Micros(*self.dice.pick(&[0, 8_000, 40_000, 150_000])))),
            5..=7 => Some(spent.plus(Micros(1_000_000))),
            _ => None,
        };
    }

    /// Resumes the run with a lower cap, which running clients may exceed.
    fn lower_cap(&mut self, host: &mut Host) {
        if !self.dice.percent(15) {
            return;
        }
        let spent = host.world.borrow().last.spent;
        let cap = spent.plus(Micros(*self.dice.pick(&[0, 30_000, 120_000, 300_000])));
        host.settings.budget = Some(host.settings.budget.map_or(cap, |known| known.min(cap)));
    }

    /// Sometimes stops a run that has no owner, and returns whether it did.
    fn stop_without_owner(&mut self, host: &mut Host) -> Result<bool, Violation> {
        let born = host.phase() != Phase::Unborn;
        if !born || self.stops >= MAX_STOPS || !self.dice.percent(4) {
            return Ok(false);
        }
        let (mode, key) = self.next_request();
        host.stop_without_owner(mode, &key)?;
        Ok(true)
    }

    /// Sometimes edits the workflow before a failed run is resumed.
    fn edit(&mut self, host: &mut Host) {
        if !self.dice.percent(30) {
            return;
        }
        let edited = self.workflow.edited(&mut self.dice);
        if let Ok(definition) = edited.definition() {
            host.edit(&format!("edit {}", self.resumes), definition);
            self.workflow = edited;
        }
    }

    fn advance(&mut self, host: &mut Host) -> Result<(), Violation> {
        let mut inputs = Vec::new();
        let mut echo = None;
        // Several outcomes in one batch give one record, as when they arrive together.
        for _ in 0..=self.dice.below(3) {
            self.inject_into_blob(host);
            match host.tick() {
                // No client runs and no wait is due, so nothing would ever wake the owner: the run
                // has lost a turn.
                Ticked::Nothing if inputs.is_empty() => {
                    return Err(Violation(format!("the run is stuck: {:?}", host.phase())));
                }
                Ticked::Nothing => break,
                Ticked::Down => return Ok(()),
                Ticked::Due => inputs.push(Input::Due),
                Ticked::Settled(attempt, outcome) => {
                    self.inject_into_outcome(host, &outcome);
                    let (turn, attempt) = attempt;
                    let input = Input::Settled { turn, attempt, outcome: *outcome };
                    if self.dice.percent(10) {
                        echo = Some(input.clone());
                    }
                    inputs.push(input);
                }
            }
        }
        host.handle(inputs)?;
        // The same outcome again must be refused.
        let Some(input) = echo.filter(|_| host.is_up()) else { return Ok(()) };
        let verdicts = host.handle(vec![input])?;
        match verdicts.as_slice() {
            // Empty if the machine went down.
            [] | [Err(Refusal::Fenced(_))] => Ok(()),
            other => Err(Violation(format!("a second outcome was not refused: {other:?}"))),
        }
    }
}

/// Conditions that make faults more interesting now.
struct Conditions {
    /// A retry or a hold waits for its time.
    has_wait: bool,
    /// A stop was requested.
    is_stopping: bool,
    /// A client of an earlier owner is running.
    has_adopted: bool,
}

impl Conditions {
    fn of(host: &Host) -> Self {
        let world = host.world.borrow();
        Self {
            has_wait: world.last.next_due().is_some(),
            is_stopping: matches!(world.last.phase, Phase::Stopping(_)),
            has_adopted: world.clients.running().any(|(_, client)| client.adoptions > 0),
        }
    }
}

/// Checks that a run that is over stays over.
fn check_stays_over(host: &mut Host) -> Result<(), Violation> {
    host.world.borrow().check_no_client_runs()?;
    // A resume revives the agents of a failed run, so this run would rightly continue.
    if host.phase() == Phase::Ended(Ending::Failed) {
        return Ok(());
    }
    let (before, phase) = (host.world.borrow().acknowledged.len(), host.phase());
    // A fault that was planned for an earlier step could change what this boot does.
    host.faults.disarm();
    host.boot()?;
    let after = host.world.borrow().acknowledged.len();
    if after != before || host.phase() != phase {
        return Err(Violation("a run that was over continued".to_owned()));
    }
    Ok(())
}
