//! Random workflows through the simulator and through the reference: the same history, line by line.
//!
//! Odd seeds are also disturbed: crashes, kills, full disks, stops. What depends on timing is left
//! out, because the reference knows no time: no cap, no bound on agents that is ever reached, and in
//! disturbed runs no budget of a visit (an interrupted attempt is charged).

use crate::sim::disturber::Disturber;
use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::BackendName;
use raymond_core::run::Settings;
use raymond_core::time::Timestamp;

use crate::dice::Dice;
use crate::reference::{self, Answer, Attempt, Outcome, Trouble, interpret};
use crate::sim::author::Workflow;
use crate::sim::cast::{Cast, Repertoire};
use crate::sim::history::History;
use crate::sim::host::{Host, Leftovers, Patience, Seeds};
use crate::sim::passage::drive;
use crate::sim::speech::{Place, Speech, Voice as _};
use crate::sim::weather::Weather;
use crate::violation::Violation;

/// Compares the run of a seed; how many lines were compared.
pub fn compare(seed: u64) -> Result<usize, Violation> {
    Comparison::new(seed).run(false).1
}

/// Compares the run of a seed, and tells what happens in it.
pub fn tell(seed: u64) -> (Vec<String>, Result<usize, Violation>) {
    Comparison::new(seed).run(true)
}

struct Comparison {
    seed: u64,
    workflow: Workflow,
    cast: Cast,
    settings: Settings,
    disturber: Disturber,
}

impl Comparison {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0xc0de);
        let disturbed = seed % 2 == 1;
        let mut workflow = Workflow::random(&mut dice);
        if disturbed {
            workflow.drop_budgets();
        }
        let alone = !disturbed && dice.percent(25);
        let cast = Cast {
            seed,
            states: workflow.names(),
            trouble: *dice.pick(&[0, 5, 15, 40]),
            nonsense: *dice.pick(&[0, 10, 30, 50]),
            repertoire: if alone { Repertoire::Alone } else { Repertoire::Plain },
            weather: Weather::default(),
            storm: 0,
        };
        let settings = Settings {
            budget: None,
            max_parallel: 1 + u32::try_from(dice.below(4)).unwrap_or(0),
            reminders: *dice.pick(&[0, 1, 3]),
            retries: *dice.pick(&[0, 2, 5]),
            backend: BackendName::new("scripted"),
            model: dice.percent(30).then(|| "sonnet".to_owned()),
            ..Settings::default()
        };
        let chance = if disturbed { 6 } else { 0 };
        let disturber = Disturber { dice, chance, stops: 0 };
        Self { seed, workflow, cast, settings, disturber }
    }

    fn run(mut self, listen: bool) -> (Vec<String>, Result<usize, Violation>) {
        let expected = match self.expected() {
            Ok(expected) => expected,
            Err(endless) => return (Vec::new(), Err(Violation(endless.to_string()))),
        };
        let mut host = match self.host() {
            Ok(host) => host,
            Err(violation) => return (Vec::new(), Err(violation)),
        };
        if listen {
            host.reality.borrow_mut().story.listen();
        }
        let compared =
            drive(&mut host, &mut self.disturber).and_then(|()| same(&expected, &host.history()));
        let lines = host.reality.borrow_mut().story.lines();
        (lines, compared)
    }

    fn host(&self) -> Result<Host, Violation> {
        let seeds = Seeds { world: self.seed, disk: self.seed };
        let (definition, voice) = (self.workflow.definition()?, Box::new(self.cast.clone()));
        let mut host = Host::new(seeds, definition, voice, self.settings.clone())?;
        host.leftovers = Leftovers::Progress;
        host.patience = Patience::NONE;
        Ok(host)
    }

    fn expected(&self) -> Result<History, reference::Endless> {
        let settings = reference::Settings {
            model: self.settings.model.clone(),
            max_agents: self.settings.max_agents,
            reminders: self.settings.reminders,
            retries: self.settings.retries,
            most_attempts: 20_000,
        };
        let mut oracle = |attempt: Attempt<'_>| answer(&self.cast, attempt);
        let history = interpret(&self.workflow.reference(), &settings, &mut oracle)?;
        let lines = |lines: Vec<reference::Line>| lines.iter().map(ToString::to_string).collect();
        Ok(history.agents.into_iter().map(|(agent, told)| (agent, lines(told))).collect())
    }
}

/// What the cast answers, in the words of the reference.
fn answer(cast: &Cast, attempt: Attempt<'_>) -> Answer {
    let place = Place {
        agent: attempt.agent.as_str(),
        state: attempt.state.as_str(),
        count: attempt.count,
        turn: attempt.turn,
        attempt: attempt.attempt,
        heard: 0,
        backend: "",
        cap: None,
    };
    let (outcome, cost) = match cast.speech(place, Timestamp(0)) {
        Speech::Says(text, cost) => (Outcome::Text(text), cost),
        Speech::Fails(failure, cost) => (Outcome::Failure(trouble(&failure)), cost),
        Speech::Denied(..)
        | Speech::Capped(_)
        | Speech::SaysCapped(..)
        | Speech::Hangs
        | Speech::Ran(_)
        | Speech::Answers(..) => {
            unreachable!("only the full repertoire has these")
        }
    };
    let cost = match cost {
        Cost::Reported(amount) => amount,
        Cost::Free | Cost::Estimated(_) | Cost::AtLeast(_) | Cost::Unknown => Micros::ZERO,
    };
    Answer { cost, outcome }
}

fn trouble(failure: &TurnFailure) -> Trouble {
    match failure {
        TurnFailure::Transient { .. } => Trouble::Transient,
        TurnFailure::Timeout { .. } => Trouble::Timeout,
        TurnFailure::Quota { .. } => Trouble::Quota,
        TurnFailure::Auth { .. } => Trouble::Auth,
        TurnFailure::Environment { .. } => Trouble::Environment,
        TurnFailure::LostSession { .. } => Trouble::LostSession,
        TurnFailure::Script { .. } => Trouble::Script,
        TurnFailure::Task { .. }
        | TurnFailure::OutputTooLarge { .. }
        | TurnFailure::Step { .. }
        | TurnFailure::NotStarted { .. } => Trouble::Task,
    }
}

/// Whether two histories are the same; how many lines they have.
///
/// Whoever resumes a run after a crash also revives the agents that had failed: so `found` may go
/// on with `revive` where `expected` ends with a failure, and whatever follows is not compared.
pub fn same(expected: &History, found: &History) -> Result<usize, Violation> {
    let mut revived = false;
    for (agent, lines) in expected {
        let others = found.get(agent).map(Vec::as_slice).unwrap_or_default();
        let longest = lines.len().max(others.len());
        for (expected, found) in (0..longest).map(|index| (lines.get(index), others.get(index))) {
            if let (None, Some(line)) = (expected, found)
                && line.starts_with("revive ")
            {
                revived = true;
                break;
            }
            if expected != found {
                let (expected, found) = (shown(expected), shown(found));
                return Err(Violation(format!("expected `{expected}`, found `{found}`")));
            }
        }
    }
    match found.keys().find(|agent| !expected.contains_key(*agent)) {
        Some(agent) if !revived => Err(Violation(format!("nobody expected {agent}"))),
        Some(_) | None => Ok(expected.values().map(Vec::len).sum()),
    }
}

fn shown(line: Option<&String>) -> String {
    match line {
        Some(line) => line.chars().take(200).collect(),
        None => "nothing more".to_owned(),
    }
}
