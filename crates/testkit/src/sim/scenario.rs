//! One random run from its first record to its last, through whatever goes wrong on the way.

use raymond_core::budget::Micros;
use raymond_core::ids::BackendName;
use raymond_core::run::input::StopMode;
use raymond_core::run::settings::{InterruptedScripts, OnLostSession};
use raymond_core::run::{Ending, Input, Phase, Refusal, Settings};
use raymond_core::time::Span;
use raymond_core::workflow::definition::Start;
use raymond_core::workflow::{Definition, Platform};

use crate::dice::Dice;

use super::auditor::Violation;
use super::author::Workflow;
use super::coverage::Coverage;
use super::host::{Host, Ticked};
use super::plan::Trouble;
use super::speech::Cast;

/// More steps than any of these runs takes.
const MOST_STEPS: u32 = 6_000;
/// After so many resumes of a failed run its failures are believed.
const MOST_RESUMES: u32 = 3;

/// Simulates the run of a seed.
pub fn simulate(seed: u64) -> Result<Coverage, Violation> {
    let mut dice = Dice::new(seed);
    let workflow = Workflow::random(&mut dice);
    let parsed = Definition::parse(workflow.sources(), &Start::Entry, Platform::Unix);
    let definition = parsed.map_err(|wrong| Violation(format!("{wrong:?}")))?.definition;
    let cast = Cast {
        seed,
        states: workflow.names().into_iter().map(str::to_owned).collect(),
        trouble: *dice.pick(&[0, 5, 15, 40]),
        nonsense: *dice.pick(&[0, 10, 30]),
    };
    let settings = settings(&mut dice);
    let mut host = Host::new(seed, definition, Box::new(cast), settings);
    let mut scenario = Scenario { dice, resumes: 0, stops: 0 };
    for _ in 0..MOST_STEPS {
        if scenario.step(&mut host)? {
            nothing_more(&mut host)?;
            let coverage = host.reality.borrow().coverage.clone();
            return Ok(coverage);
        }
    }
    Err(Violation(format!("the run does not end: {:?}", host.phase())))
}

fn settings(dice: &mut Dice) -> Settings {
    Settings {
        budget: *dice.pick(&[None, Some(Micros(10_000_000)), Some(Micros(400_000))]),
        strict_budget: dice.percent(20),
        max_parallel: 1 + u32::try_from(dice.below(4)).unwrap_or(0),
        max_agents: *dice.pick(&[1, 2, 3, 1_000]),
        reminders: *dice.pick(&[0, 1, 3]),
        retries: *dice.pick(&[0, 2, 5]),
        backend: BackendName::new("scripted"),
        no_wait: dice.percent(20),
        on_lost_session: *dice.pick(&[OnLostSession::Fail, OnLostSession::Fresh]),
        interrupted_scripts: *dice
            .pick(&[InterruptedScripts::Rerun, InterruptedScripts::Fail]),
        ..Settings::default()
    }
}

struct Scenario {
    dice: Dice,
    resumes: u32,
    stops: u32,
}

impl Scenario {
    /// Lets something happen; whether the run is over.
    fn step(&mut self, host: &mut Host) -> Result<bool, Violation> {
        if self.dice.percent(8) {
            let trouble = *self.dice.pick(&Trouble::ALL);
            host.arm(self.dice.below(10), trouble);
        }
        if !host.is_up() {
            return self.go_on(host);
        }
        if self.dice.percent(2) && self.stops < 4 {
            self.stops += 1;
            let modes = [StopMode::AfterTurn, StopMode::Now, StopMode::Now, StopMode::Cancel];
            let mode = *self.dice.pick(&modes);
            host.stop(mode, &format!("key-{}", self.stops))?;
            return Ok(false);
        }
        self.let_things_happen(host)?;
        Ok(false)
    }

    /// Boots, or resumes; whether there is nothing to resume.
    fn go_on(&mut self, host: &mut Host) -> Result<bool, Violation> {
        match host.phase() {
            Phase::Unborn | Phase::Open | Phase::Stopping(_) => {}
            Phase::Ended(Ending::Completed | Ending::Cancelled) => return Ok(true),
            Phase::Ended(Ending::Failed) => {
                self.resumes += 1;
                host.settings.max_agents = 1_000;
                if self.resumes > MOST_RESUMES {
                    return Ok(true);
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

    fn let_things_happen(&mut self, host: &mut Host) -> Result<(), Violation> {
        let mut inputs = Vec::new();
        let mut echo = None;
        for _ in 0..=self.dice.below(3) {
            match host.tick()? {
                Ticked::Nothing if inputs.is_empty() => {
                    return Err(Violation(format!("the run is stuck: {:?}", host.phase())));
                }
                Ticked::Nothing => break,
                Ticked::Down => return Ok(()),
                Ticked::Due => inputs.push(Input::Due),
                Ticked::Settled(attempt, outcome) => {
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
