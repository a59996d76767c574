//! The cause of a run's status, in one sentence.

use crate::text::counted;
use std::collections::BTreeSet;

use crate::agent::{Agent, AgentStatus};
use crate::crayfish::ErrorCode;
use crate::crayfish::key::RequestId;
use crate::failure::{Failure, TurnFailure};
use crate::ids::{AgentId, BackendName};
use crate::run::effect::in_flight;
use crate::run::program::without_result;
use crate::run::{Ending, Phase, Ralph, Run};
use crate::scheduler::Hold;
use crate::scheduler::Lane;

use super::backend_labels::{BackendLabels, answering};
use super::ledger::{Ledger, Stopper};
use super::next_command::is_of_caller;
use super::place::place;
use super::status::{Status, Waiting};
use crate::text::quoted;

/// Returns the cause of a status, in one sentence without a full stop.
pub fn why(run: &Run, ledger: &Ledger, status: Status) -> String {
    let naming = ledger.naming();
    match status {
        Status::Running => running(run, naming),
        Status::Waiting(waiting, _) => waits(run, waiting, naming),
        Status::Completed => completed(run, ledger),
        Status::Failed => failed(run, naming),
        Status::OverBudget => over_budget(run),
        Status::Cancelled => "`raymond cancel` ended it; it cannot be resumed".to_owned(),
        Status::Stopped if is_of_caller(run) => stopper_words(ledger.stopper).to_owned(),
        Status::Stopped => {
            let by = stopper_words(ledger.stopper);
            format!("{by}; {} can continue", counted(run.live, "agent"))
        }
        Status::Interrupted => interrupted(run, naming),
    }
}

fn completed(run: &Run, ledger: &Ledger) -> String {
    let until = run.program.ralph().and_then(|ralph| ralph.until.as_deref());
    if run.program.steps().is_some() {
        return match collected(run) {
            0 => "every step is done".to_owned(),
            1 => "every step is done; 1 failure was collected".to_owned(),
            several => format!("every step is done; {several} failures were collected"),
        };
    }
    match ledger.exhausted {
        Some(iterations) => without_result(iterations, until),
        None => format!("{} ended with a result", everybody(run.ended.len())),
    }
}

/// Returns how many failures the loops of a completed run collected.
pub fn collected(run: &Run) -> usize {
    let results = run.program.steps().into_iter().flat_map(|flow| flow.results.values());
    match run.phase {
        Phase::Ended(Ending::Completed) => results.filter(|stored| !stored.ok).count(),
        Phase::Unborn | Phase::Open | Phase::Stopping(_) | Phase::Ended(_) => 0,
    }
}

/// Returns `main` or `main and 3 workers`.
fn everybody(agents: usize) -> String {
    match agents.saturating_sub(1) {
        0 => "main".to_owned(),
        workers => format!("main and {}", counted(workers as u64, "worker")),
    }
}

const fn stopper_words(stopper: Option<Stopper>) -> &'static str {
    match stopper {
        Some(Stopper::Signal) => "a signal to its process stopped it",
        Some(Stopper::Trouble) => "trouble in its process stopped it",
        Some(Stopper::Command) => "`raymond stop` stopped it",
        Some(Stopper::Caller) => "its caller gave up",
        None => "it was stopped",
    }
}

fn running(run: &Run, naming: BackendLabels) -> String {
    let mut agents = run.scheduler.in_flight.iter().filter_map(|id| run.agents.get(id));
    let Some(first) = agents.next() else {
        return "it is about to continue".to_owned();
    };
    let others = agents.count();
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    let stopping = match run.phase {
        Phase::Stopping(_) => ", and it was asked to end",
        Phase::Unborn | Phase::Open | Phase::Ended(_) => "",
    };
    let iteration = run.program.ralph().map(|_| {
        format!(", iteration {} of {}", Ralph::iterations(first), run.settings.max_iterations)
    });
    let iteration = iteration.unwrap_or_default();
    let Agent { id, visit, .. } = first;
    let place = format!("{}{}", visit.location, naming.suffix(answering(run, first)));
    format!("{id} is in turn {} of {place}{iteration}{more}{stopping}", visit.turn)
}

fn waits(run: &Run, waiting: Waiting, naming: BackendLabels) -> String {
    let wanted = |hold: &Hold| match (waiting, hold) {
        (Waiting::Person, Hold::Auth { .. })
        | (Waiting::Quota(_), Hold::Quota { .. })
        | (Waiting::Environment, Hold::Environment { .. }) => true,
        (
            Waiting::Person
            | Waiting::Caller
            | Waiting::Quota(_)
            | Waiting::Retry(_)
            | Waiting::Environment,
            _,
        ) => false,
    };
    let hold = run.scheduler.holds.iter().find(|(_, hold)| wanted(hold));
    match (waiting, hold) {
        (Waiting::Retry(_), _) => match run.scheduler.timers.retries().next() {
            Some((until, agent)) => {
                let backend = run.scheduler.turns.get(agent).and_then(|turn| turn.lane.backend());
                let backend = naming.suffix(backend);
                format!("{agent} tries its failed turn{backend} again at {until}")
            }
            None => "a failed turn is tried again soon".to_owned(),
        },
        (_, Some((backend, Hold::Quota { why, until }))) => {
            format!("the usage limit of {backend} is reached until {until}: {why}")
        }
        (_, Some((backend, Hold::Auth { why }))) => {
            format!("{backend} needs a person to log in: {why}")
        }
        (_, Some((_, Hold::Environment { why }))) => why.clone(),
        (Waiting::Environment, None) => {
            "a resource of the machine was missing, such as disk space".to_owned()
        }
        (Waiting::Person, None) => "a question is open".to_owned(),
        (Waiting::Caller, None) => owed(run),
        (Waiting::Quota(_), None) => "a usage limit was reached".to_owned(),
    }
}

/// Names the outputs that the caller has to send.
fn owed(run: &Run) -> String {
    let attempts = run.program.steps().map(|flow| &flow.attempts);
    let asked = run.scheduler.asks.keys().filter_map(|ask| {
        let key = run.agents.get(&ask.agent)?.visit.location.step()?.clone();
        let attempt = attempts?.get(&key).copied().unwrap_or(1);
        Some(RequestId { run: Some(run.id.clone()), key, attempt })
    });
    let asked: BTreeSet<RequestId> = asked.collect();
    match (asked.first(), asked.len()) {
        (None, _) => "the caller has to send an output".to_owned(),
        (Some(first), 1) => format!("the caller has to answer `{first}`"),
        (Some(first), several) => {
            format!("the caller has to answer `{first}`, and {} more", several - 1)
        }
    }
}

fn failed(run: &Run, naming: BackendLabels) -> String {
    let reason = |id: &AgentId| match run.agents.get(id) {
        Some(agent @ Agent { status: AgentStatus::Failed { failure, .. }, .. }) => {
            let backend = naming.suffix(answering(run, agent));
            let first = first(run, agent, failure);
            format!("{id} failed at {}{backend}: {failure}{first}", place(run, agent))
        }
        _ => format!("{id} failed"),
    };
    let mut failed = run.failed.iter();
    match failed.next() {
        None => "an agent failed".to_owned(),
        Some(first) => format!("{}{}", reason(first), others(failed)),
    }
}

/// Returns whether the logs contain an output of a step that failed with this code.
fn is_answered(run: &Run, code: &str) -> bool {
    let is = |of: ErrorCode| of.as_str() == code;
    is(ErrorCode::ExecFailed) || is(ErrorCode::AgentOutputSchemaFailed) && !is_of_caller(run)
}

/// Returns whether a step failed because a variable has no value.
fn lacks_variable(code: &str, message: &str) -> bool {
    code == ErrorCode::UnknownName.as_str() && message.contains("`{{vars.")
}

/// Returns a hint for a variable that should be a list but is a text.
fn as_list(code: &str, message: &str) -> Option<String> {
    let of_list = code == ErrorCode::NotAnArray.as_str();
    let name = message.strip_prefix("$.vars.")?.strip_suffix(" is a string, not a list")?;
    let is_whole = !name.contains(['.', '[']);
    (of_list && is_whole).then(|| format!(" (a list is given with --var {name}:='[\"a\", \"b\"]')"))
}

/// Returns a hint about what to edit or read before a resume helps.
fn first(run: &Run, agent: &Agent, failure: &Failure) -> String {
    match failure {
        Failure::Turn(TurnFailure::Script { stderr, .. }) if !stderr.is_empty() => String::new(),
        Failure::Protocol { .. } | Failure::Turn(TurnFailure::Script { .. }) => {
            let (run, agent, state) = (&run.id, &agent.id, quoted(&agent.visit.location.stem()));
            format!(" (its output: raymond logs {run} --agent {agent} --state {state})")
        }
        // Other messages name the missing value themselves, and a caller knows its own outputs.
        Failure::Step { code, message } if lacks_variable(code, message) && !is_of_caller(run) => {
            " (a variable is given with --var NAME=VALUE)".to_owned()
        }
        Failure::Step { code, .. } if is_answered(run, code) => {
            let state = quoted(&agent.visit.location.to_string());
            format!(" (its output: raymond logs {} --state {state})", run.id)
        }
        Failure::Step { code, message } if !is_of_caller(run) => {
            as_list(code, message).unwrap_or_default()
        }
        Failure::Visits { state, .. } => {
            format!(" (first raise `max_visits` in {state}, or add `then`)")
        }
        Failure::OtherBackend { state, holds, instead_of: None, .. } => {
            format!(" (first let {holds} answer {state})")
        }
        Failure::OtherBackend { holds, instead_of: Some(limited), .. } => format!(
            " (first let `then` of {limited} name a state that {holds} answers, or raise its `max_visits`)"
        ),
        Failure::VisitBudget { .. } => " (first raise the `budget` of that state)".to_owned(),
        Failure::Turn(_)
        | Failure::Denied { .. }
        | Failure::TooManyAgents { .. }
        | Failure::HeldForGood { .. }
        | Failure::TooDeep { .. }
        | Failure::Crashes { .. }
        | Failure::Stalled { .. }
        | Failure::InterruptedScript
        | Failure::Step { .. }
        | Failure::Unanswered => String::new(),
    }
}

/// Names the other failed agents, up to a limit.
fn others<'a>(mut failed: impl ExactSizeIterator<Item = &'a AgentId>) -> String {
    const NAMED: usize = 10;
    if failed.len() == 0 {
        return String::new();
    }
    let named: Vec<&str> = failed.by_ref().take(NAMED).map(AgentId::as_str).collect();
    let more = match failed.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("; {}{more} failed, too", named.join(", "))
}

fn over_budget(run: &Run) -> String {
    let cap = run.settings.budget.unwrap_or_default();
    let queued: usize = run
        .scheduler
        .queues
        .iter()
        .filter(|(lane, _)| **lane != Lane::Script)
        .map(|(_, queue)| queue.len())
        .sum();
    let waiting = match queued {
        0 => String::new(),
        1 => "; 1 turn waits for a higher --budget".to_owned(),
        several => format!("; {several} turns wait for a higher --budget"),
    };
    format!("{} of the {cap} cap is spent{waiting}", run.spent)
}

fn interrupted(run: &Run, naming: BackendLabels) -> String {
    let asked = in_flight(run).filter_map(|turn| naming.label(turn.lane.backend()));
    let asked: BTreeSet<&str> = asked.map(BackendName::as_str).collect();
    let backends = match asked.into_iter().collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        names => format!(" ({names})"),
    };
    match run.scheduler.in_flight.len() {
        0 => "its process died; no turn was in flight".to_owned(),
        n => {
            let turns = counted(n as u64, "turn");
            format!("its process died with {turns} in flight{backends}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_is_requested_only_if_missing() {
        let check = |code: ErrorCode, message: &str, expected: bool| {
            assert_eq!(lacks_variable(code.as_str(), message), expected, "{message}");
        };
        check(ErrorCode::UnknownName, "`{{vars.who}}` has no value here", true);
        check(ErrorCode::UnknownName, "`{{results.a}}` has no value here", false);
        check(ErrorCode::ExecFailed, "`{{vars.who}}` was printed", false);
    }

    #[test]
    fn list_is_requested_only_for_text_variables() {
        let check = |code: ErrorCode, message: &str, expected: Option<&str>| {
            assert_eq!(as_list(code.as_str(), message).as_deref(), expected, "{message}");
        };
        let text = " (a list is given with --var word:='[\"a\", \"b\"]')";
        check(ErrorCode::NotAnArray, "$.vars.word is a string, not a list", Some(text));
        check(ErrorCode::NotAnArray, "$.vars.word is a number, not a list", None);
        check(ErrorCode::NotAnArray, "$.vars.some.word is a string, not a list", None);
        check(ErrorCode::NotAnArray, "$.vars.words[1] is a string, not a list", None);
        check(ErrorCode::ExecFailed, "$.vars.word is a string, not a list", None);
    }
}
