//! Runs random workflows in the simulator and in the reference interpreter, and compares their
//! histories line by line.
//!
//! Odd seeds also meet faults: crashes, kills, full disks, stop requests. The reference has no
//! clock, so the workflows avoid everything that depends on timing: caps, agent limits that a run
//! could reach, and (with faults) budgets of visits, because an interrupted attempt is charged.

use crate::sim::random_faults::RandomFaults;
use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::BackendName;
use raymond_core::run::Settings;
use raymond_core::time::Timestamp;

use crate::dice::Dice;
use crate::reference::{self, Answer, Attempt, FailureKind, Outcome, interpret};
use crate::sim::drive::drive;
use crate::sim::history::History;
use crate::sim::host::{HelpLimits, Host, Leftovers, Seeds};
use crate::sim::outages::Outages;
use crate::sim::random_agents::{Behavior, RandomAgents};
use crate::sim::random_workflow::RandomWorkflow;
use crate::sim::reply::{Reply, ReplySource as _, TurnRequest};
use crate::violation::Violation;

/// Compares the run of a seed, and returns the number of compared lines.
pub fn compare(seed: u64) -> Result<usize, Violation> {
    Comparison::new(seed).run(false).1
}

/// Compares the run of a seed, and also returns a trace of it.
pub fn compare_with_trace(seed: u64) -> (Vec<String>, Result<usize, Violation>) {
    Comparison::new(seed).run(true)
}

struct Comparison {
    seed: u64,
    workflow: RandomWorkflow,
    random_agents: RandomAgents,
    settings: Settings,
    faults: RandomFaults,
}

impl Comparison {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0xc0de);
        // By the seed and not by the dice, so that a run of any range has both halves.
        let disturbed = seed % 2 == 1;
        let mut workflow = RandomWorkflow::random(&mut dice);
        if disturbed {
            workflow.drop_budgets();
        }
        // Without forks, because the reference lets only the failing agent wait for a login.
        // Without faults, because a resume after a crash would end that wait early.
        let alone = !disturbed && dice.percent(25);
        let random_agents = RandomAgents {
            seed,
            states: workflow.names(),
            failures: *dice.pick(&[0, 5, 15, 40]),
            mistakes: *dice.pick(&[0, 10, 30, 50]),
            behavior: if alone { Behavior::WithoutForks } else { Behavior::Comparable },
            outages: Outages::default(),
            first_forks: 0,
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
        let faults = RandomFaults { dice, chance, stops: 0 };
        Self { seed, workflow, random_agents, settings, faults }
    }

    fn run(mut self, traced: bool) -> (Vec<String>, Result<usize, Violation>) {
        let expected = match self.expected() {
            Ok(expected) => expected,
            Err(endless) => return (Vec::new(), Err(Violation(endless.to_string()))),
        };
        let mut host = match self.host() {
            Ok(host) => host,
            Err(violation) => return (Vec::new(), Err(violation)),
        };
        if traced {
            host.world.borrow_mut().trace.enable();
        }
        let compared = drive(&mut host, &mut self.faults)
            .and_then(|()| compare_histories(&expected, &host.history()));
        let lines = host.world.borrow_mut().trace.take_lines();
        (lines, compared)
    }

    fn host(&self) -> Result<Host, Violation> {
        let seeds = Seeds { world: self.seed, disk: self.seed };
        let (definition, replies) =
            (self.workflow.definition()?, Box::new(self.random_agents.clone()));
        let mut host = Host::new(seeds, definition, replies, self.settings.clone())?;
        // Otherwise five crashes in a row would fail an agent, which the reference cannot know.
        host.leftovers = Leftovers::Progress;
        // The reference ends with the first failure, so no user resumes the failed run either.
        host.help_limits = HelpLimits::NONE;
        Ok(host)
    }

    fn expected(&self) -> Result<History, reference::AttemptLimit> {
        let settings = reference::InterpreterSettings {
            model: self.settings.model.clone(),
            max_agents: self.settings.max_agents,
            reminders: self.settings.reminders,
            retries: self.settings.retries,
            // Far more than any of these runs needs; a workflow that loops forever must not hang
            // the test.
            max_attempts: 20_000,
        };
        let mut oracle = |attempt: Attempt<'_>| answer(&self.random_agents, attempt);
        let history = interpret(&self.workflow.reference(), &settings, &mut oracle)?;
        // Both histories are compared as text, so that a difference prints as a line.
        let lines = |lines: Vec<reference::Line>| lines.iter().map(ToString::to_string).collect();
        Ok(history
            .agents
            .into_iter()
            .map(|(agent, agent_lines)| (agent, lines(agent_lines)))
            .collect())
    }
}

/// Converts a random agent's reply to an answer of the reference.
fn answer(random_agents: &RandomAgents, attempt: Attempt<'_>) -> Answer {
    let request = TurnRequest {
        agent: attempt.agent.as_str(),
        state: attempt.state.as_str(),
        count: attempt.count,
        turn: attempt.turn,
        attempt: attempt.attempt,
        // Comparable agents depend on none of these three.
        finished: 0,
        backend: "",
        cap: None,
    };
    let (outcome, cost) = match random_agents.reply(request, Timestamp(0)) {
        Reply::Says(text, cost) => (Outcome::Text(text), cost),
        Reply::Fails(failure, cost) => (Outcome::Failure(failure_kind(&failure)), cost),
        Reply::Denied(..)
        | Reply::Capped(_)
        | Reply::SaysCapped(..)
        | Reply::Hangs
        | Reply::Ran(_)
        | Reply::Answers(..) => {
            unreachable!("only the full repertoire has these")
        }
    };
    let cost = match cost {
        Cost::Reported(amount) => amount,
        // Only scripts are free here. The other three need the full behaviour, which is never
        // compared.
        Cost::Free | Cost::Estimated(_) | Cost::AtLeast(_) | Cost::Unknown => Micros::ZERO,
    };
    Answer { cost, outcome }
}

fn failure_kind(failure: &TurnFailure) -> FailureKind {
    match failure {
        TurnFailure::Transient { .. } => FailureKind::Transient,
        TurnFailure::Timeout { .. } => FailureKind::Timeout,
        TurnFailure::Quota { .. } => FailureKind::Quota,
        TurnFailure::Auth { .. } => FailureKind::Auth,
        TurnFailure::Environment { .. } => FailureKind::Environment,
        TurnFailure::LostSession { .. } => FailureKind::LostSession,
        TurnFailure::Script { .. } => FailureKind::Script,
        TurnFailure::Task { .. }
        | TurnFailure::OutputTooLarge { .. }
        | TurnFailure::Step { .. }
        | TurnFailure::NotStarted { .. } => FailureKind::Task,
    }
}

/// Compares two histories, and returns the number of lines.
///
/// A resume after a crash also revives failed agents. So `found` may continue with `revive` where
/// `expected` ends with a failure, and a wait for such an agent may end in another way. Later lines
/// are not compared.
pub fn compare_histories(expected: &History, found: &History) -> Result<usize, Violation> {
    let is_revival = |line: &String| line.starts_with("revive ");
    let any_revived = found.values().flatten().any(is_revival);
    let mut revived = false;
    for (agent, lines) in expected {
        let others = found.get(agent).map(Vec::as_slice).unwrap_or_default();
        let longest = lines.len().max(others.len());
        for (expected, found) in (0..longest).map(|index| (lines.get(index), others.get(index))) {
            if expected.is_none() && found.is_some_and(is_revival) {
                revived = true;
                break;
            }
            let ends_a_wait = match expected {
                Some(line) => line.starts_with("handed "),
                None => lines.last().is_some_and(|line| line.starts_with("park ")),
            };
            if expected != found && any_revived && ends_a_wait {
                revived = true;
                break;
            }
            if expected != found {
                let (expected, found) = (excerpt(expected), excerpt(found));
                return Err(Violation(format!("expected `{expected}`, found `{found}`")));
            }
        }
    }
    match found.keys().find(|agent| !expected.contains_key(*agent)) {
        // A revived agent may fork workers that the reference never sees.
        Some(agent) if !revived => Err(Violation(format!("unexpected agent {agent}"))),
        Some(_) | None => Ok(expected.values().map(Vec::len).sum()),
    }
}

fn excerpt(line: Option<&String>) -> String {
    match line {
        Some(line) => line.chars().take(200).collect(),
        None => "nothing more".to_owned(),
    }
}
