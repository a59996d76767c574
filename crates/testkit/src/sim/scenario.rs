//! One random run from its first record to its last, through whatever goes wrong on the way.

mod aim;

use raymond_core::budget::Micros;
use raymond_core::ids::BackendName;
use raymond_core::run::input::StopMode;
use raymond_core::run::settings::{InterruptedScripts, OnLostSession};
use raymond_core::run::{Ending, Input, Phase, Refusal, Settings};
use raymond_core::time::Span;

use crate::dice::Dice;

use super::auditor::Violation;
use super::author::Workflow;
use super::cast::{Cast, Repertoire};
use super::coverage::Coverage;
use super::host::{Host, Seeds, Ticked};

/// More steps than any of these runs takes.
const MOST_STEPS: u32 = 6_000;
/// After so many resumes of a failed run its failures are believed.
const MOST_RESUMES: u32 = 2;
/// After so many troubles the machine is left alone.
const MOST_TROUBLES: u32 = 16;

/// Simulates the run of a seed.
pub fn simulate(seed: u64) -> Result<Coverage, Violation> {
    let (mut scenario, mut host) = Scenario::new(seed)?;
    scenario.run(&mut host)?;
    let coverage = std::mem::take(&mut host.reality.borrow_mut().coverage);
    Ok(coverage)
}

/// Simulates the run of a seed, and tells what happens in it.
pub fn tell(seed: u64) -> (Vec<String>, Result<(), Violation>) {
    let (mut scenario, mut host) = match Scenario::new(seed) {
        Ok(ready) => ready,
        Err(violation) => return (Vec::new(), Err(violation)),
    };
    host.reality.borrow_mut().story.listen();
    let ended = scenario.run(&mut host);
    let lines = host.reality.borrow_mut().story.lines();
    (lines, ended)
}

struct Scenario {
    dice: Dice,
    workflow: Workflow,
    resumes: u32,
    stops: u32,
    troubles: u32,
}

impl Scenario {
    fn new(seed: u64) -> Result<(Self, Host), Violation> {
        let mut dice = Dice::new(seed);
        let workflow = Workflow::random(&mut dice);
        let cast = Cast {
            seed,
            states: workflow.names(),
            trouble: *dice.pick(&[0, 5, 15, 40]),
            nonsense: *dice.pick(&[0, 10, 30]),
            repertoire: Repertoire::Full,
        };
        let settings = settings(&mut dice);
        let seeds = Seeds { world: seed, disk: seed };
        let host = Host::new(seeds, workflow.definition()?, Box::new(cast), settings)?;
        Ok((Self { dice, workflow, resumes: 0, stops: 0, troubles: 0 }, host))
    }

    fn run(&mut self, host: &mut Host) -> Result<(), Violation> {
        for _ in 0..MOST_STEPS {
            if self.step(host)? {
                return nothing_more(host);
            }
        }
        Err(Violation(format!("the run does not end: {:?}", host.phase())))
    }

    /// Lets something happen; whether the run is over.
    fn step(&mut self, host: &mut Host) -> Result<bool, Violation> {
        if self.dice.percent(5) {
            self.any_trouble(host);
        }
        if !host.is_up() {
            return self.go_on(host);
        }
        match self.dice.below(100) {
            0 | 1 if self.stops < 4 => self.stop(host)?,
            2 => host.sleep(Span::minutes(60 * self.dice.below(9))),
            3 => host.set_back(Span::minutes(self.dice.below(10))),
            4 => host.intrude()?,
            5 => {
                // The owner looks at its clock too early.
                host.handle(vec![Input::Due])?;
            }
            _ => self.let_things_happen(host)?,
        }
        Ok(false)
    }

    fn stop(&mut self, host: &mut Host) -> Result<(), Violation> {
        self.stops += 1;
        let modes = [StopMode::AfterTurn, StopMode::Now, StopMode::Now, StopMode::Cancel];
        let mode = *self.dice.pick(&modes);
        self.trouble_for_a_record(host, 50);
        host.stop(mode, &format!("key-{}", self.stops))
    }

    /// Boots, or resumes; whether there is nothing to resume.
    fn go_on(&mut self, host: &mut Host) -> Result<bool, Violation> {
        match host.phase() {
            Phase::Unborn => self.trouble_for_a_boot(host, 20),
            Phase::Open | Phase::Stopping(_) => self.trouble_for_a_recovery(host),
            Phase::Ended(Ending::Completed | Ending::Cancelled) => return Ok(true),
            Phase::Ended(Ending::Failed) => {
                self.resumes += 1;
                host.settings.max_agents = 1_000;
                if self.resumes > MOST_RESUMES {
                    return Ok(true);
                }
                self.edit(host);
                if self.dice.percent(30) {
                    self.trouble_for_a_recovery(host);
                } else {
                    self.trouble_for_a_boot(host, 40);
                }
            }
            Phase::Ended(Ending::OverBudget) => {
                let spent = host.reality.borrow().last.spent;
                host.settings.budget = Some(spent.plus(Micros(1_000_000)));
            }
            Phase::Ended(Ending::Stopped | Ending::NeedsPerson) => {}
            Phase::Ended(Ending::NoQuota) => host.sleep(Span::minutes(30)),
        }
        host.boot()?;
        Ok(false)
    }

    /// Somebody edits the workflow before a failed run is resumed.
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

    fn let_things_happen(&mut self, host: &mut Host) -> Result<(), Violation> {
        let mut inputs = Vec::new();
        let mut echo = None;
        for _ in 0..=self.dice.below(3) {
            self.trouble_for_a_blob(host);
            match host.tick() {
                Ticked::Nothing if inputs.is_empty() => {
                    return Err(Violation(format!("the run is stuck: {:?}", host.phase())));
                }
                Ticked::Nothing => break,
                Ticked::Down => return Ok(()),
                Ticked::Due => inputs.push(Input::Due),
                Ticked::Settled(attempt, outcome) => {
                    self.trouble_for_an_outcome(host, &outcome);
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
        // The same outcome once more changes nothing.
        let Some(input) = echo.filter(|_| host.is_up()) else { return Ok(()) };
        let verdicts = host.handle(vec![input])?;
        match verdicts.as_slice() {
            [] | [Err(Refusal::Fenced { .. })] => Ok(()),
            other => Err(Violation(format!("a second outcome was not refused: {other:?}"))),
        }
    }
}

fn settings(dice: &mut Dice) -> Settings {
    Settings {
        budget: *dice.pick(&[None, Some(Micros(10_000_000)), Some(Micros(400_000))]),
        strict_budget: dice.percent(20),
        max_parallel: 1 + u32::try_from(dice.below(4)).unwrap_or(0),
        max_agents: *dice.pick(&[1, 1, 2, 1_000]),
        reminders: *dice.pick(&[0, 1, 3]),
        retries: *dice.pick(&[0, 2, 5]),
        backend: BackendName::new("scripted"),
        no_wait: dice.percent(20),
        on_lost_session: *dice.pick(&[OnLostSession::Fail, OnLostSession::Fresh]),
        interrupted_scripts: *dice.pick(&[InterruptedScripts::Rerun, InterruptedScripts::Fail]),
        ..Settings::default()
    }
}

/// A run that is over stays over.
fn nothing_more(host: &mut Host) -> Result<(), Violation> {
    if host.phase() == Phase::Ended(Ending::Failed) {
        return Ok(());
    }
    let (before, phase) = (host.reality.borrow().acknowledged.len(), host.phase());
    host.plan.disarm();
    host.boot()?;
    let after = host.reality.borrow().acknowledged.len();
    if after != before || host.phase() != phase {
        return Err(Violation("a run that was over went on".to_owned()));
    }
    Ok(())
}
