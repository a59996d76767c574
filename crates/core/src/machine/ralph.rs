//! Decides what follows from an iteration of a `ralph` loop.
//!
//! An iteration is a visit of the one prompt. A result ends the loop. With `--until`, the command
//! runs after each iteration, as a visit of its own, and the loop ends as soon as the command
//! passes; only a failed result still ends the loop at once. The visit of the command gets the
//! payload of a result as its input. Everything else, including most failures, leads to the prompt
//! again in a fresh session. There is no stack, no policy and no reminder.

use crate::failure::{AgentFailure, TurnFailure};
use crate::ids::StateName;
use crate::protocol::{Malformed, ResultStatus, Tag, TagName, TagReading};
use crate::run::decision::{Decision, VisitEntry};
use crate::run::event::{Event, StackChange};
use crate::run::outcome::Finished;
use crate::run::program::{Ralph, UNTIL};
use crate::run::warning::Warning;
use crate::scheduler::Lane;
use crate::text::{CommandPhrase, excerpt};
use crate::value::Value;
use crate::workflow::OnDenied;

use super::revival;
use super::tags::result::end;
use crate::agent::{Agent, AgentStatus, Session};

/// Characters of a line of output in a warning, so that the warning fits two lines of a terminal.
const SHOWN: usize = 120;

/// Decides what follows when a turn of the loop ends with a text.
pub(crate) fn finished(
    decision: &mut Decision<'_>,
    ralph: &Ralph,
    agent: &Agent,
    outcome: &Finished,
) {
    if decision.lane(&agent.visit.location) == Lane::Script {
        // Only the command of `--until` is a script, and a script finishes only with exit status 0.
        let result = agent.visit.input.clone().unwrap_or_else(empty);
        return decision.push(Event::AgentEnded { agent: agent.id.clone(), result });
    }
    let front = decision.visited(agent).map(|state| &state.front);
    let strict = front.is_some_and(|front| front.on_denied == OnDenied::Fail);
    // Before the result is read: with `on_denied: fail`, a result without the tool must not end the
    // loop.
    if strict && !outcome.denied.is_empty() {
        let tools = outcome.denied.clone();
        return failed(decision, ralph, agent, AgentFailure::Denied { tools });
    }
    match result(decision, agent, &outcome.reply.reading) {
        // No command can turn a failure that the agent reports into a success.
        Some(Given { payload, status: ResultStatus::Failed }) => {
            decision.push(end(&agent.id, payload, ResultStatus::Failed));
        }
        Some(Given { payload, .. }) if ralph.until.is_none() => {
            decision.push(end(&agent.id, payload, ResultStatus::Ok));
        }
        given => next(decision, ralph, agent, given.map(|given| given.payload)),
    }
}

/// The result of a message.
struct Given {
    payload: Value,
    status: ResultStatus,
}

/// Runs the command after an iteration, or starts the next iteration if there is no command.
fn next(decision: &mut Decision<'_>, ralph: &Ralph, agent: &Agent, result: Option<Value>) {
    if ralph.until.is_none() {
        return again(decision, ralph, agent, None);
    }
    let tag = if result.is_some() { TagName::Result } else { TagName::Reset };
    enter_state(decision, agent, tag, &UNTIL.into(), result);
}

/// Returns the result of a message. If there are several, none counts.
fn result(decision: &mut Decision<'_>, agent: &Agent, reading: &TagReading) -> Option<Given> {
    match reading.tags.as_slice() {
        // `omitted` needs no check: it stays 0 until thousands of tags were kept.
        [Tag::Result { payload, status }] => {
            Some(Given { payload: payload.clone(), status: *status })
        }
        // Beside a valid tag, malformed tags were reported by the caller already.
        [] => {
            for malformed in &reading.malformed {
                decision.warn(&agent.id, Warning::MalformedTag(malformed.clone()));
            }
            None
        }
        several => {
            let why = format!("{} results where one is expected", several.len() + reading.omitted);
            let malformed = Malformed { tag: TagName::Result, why };
            decision.warn(&agent.id, Warning::MalformedTag(malformed));
            None
        }
    }
}

/// Returns whether the loop continues after a failure. A turn that never started was not an
/// iteration, and a user who asked for a failure after an interruption gets it.
pub(crate) const fn survives(failure: &AgentFailure) -> bool {
    match failure {
        AgentFailure::VisitBudget { .. } | AgentFailure::Denied { .. } => true,
        AgentFailure::Turn(failure) => match failure {
            TurnFailure::Transient { .. }
            | TurnFailure::Timeout { .. }
            | TurnFailure::Task { .. }
            | TurnFailure::LostSession { .. }
            | TurnFailure::Script { .. }
            | TurnFailure::OutputTooLarge { .. } => true,
            // For the first three Raymond holds the backend of a prompt. A loop has no steps, and
            // an iteration that could not start would fail the same way again.
            TurnFailure::Quota { .. }
            | TurnFailure::Auth { .. }
            | TurnFailure::Environment { .. }
            | TurnFailure::Step { .. }
            | TurnFailure::NotStarted { .. } => false,
        },
        // A loop has no tags to remind of, no forks and no steps. Five interruptions or stalls in a
        // row end it, because another iteration would probably suffer the same.
        AgentFailure::Protocol { .. }
        | AgentFailure::Visits { .. }
        | AgentFailure::OtherBackend { .. }
        | AgentFailure::TooManyAgents { .. }
        | AgentFailure::HeldForGood { .. }
        | AgentFailure::TooDeep { .. }
        | AgentFailure::Crashes { .. }
        | AgentFailure::Stalled { .. }
        | AgentFailure::InterruptedScript
        | AgentFailure::Step { .. }
        | AgentFailure::Unanswered
        | AgentFailure::Declared { .. }
        | AgentFailure::Exhausted { .. } => false,
    }
}

/// Continues after a failed iteration, or after a command that did not pass.
pub(crate) fn failed(
    decision: &mut Decision<'_>,
    ralph: &Ralph,
    agent: &Agent,
    failure: AgentFailure,
) {
    let iteration = Ralph::iterations(agent);
    match (&ralph.until, decision.lane(&agent.visit.location)) {
        (Some(command), Lane::Script) => {
            let (status, output) = explained(&failure);
            let report = format!("{} did not pass: {status}\n\n{output}", CommandPhrase(command));
            let why = match output.lines().map(str::trim).rfind(|line| !line.is_empty()) {
                Some(last) => format!("{status}: {}", excerpt(last, SHOWN)),
                None => status,
            };
            let warning = match agent.visit.input {
                Some(_) => Warning::ResultRefused { iteration, why },
                None => Warning::NotPassed { iteration, why },
            };
            decision.warn(&agent.id, warning);
            again(decision, ralph, agent, Some(Value::Inline(report)));
        }
        (_, Lane::Script | Lane::Prompt(_)) => {
            decision.warn(&agent.id, Warning::IterationFailed { iteration, failure });
            // The iteration may have done its work before it failed.
            next(decision, ralph, agent, None);
        }
    }
}

/// Returns why the command did not pass, and the end of its output.
fn explained(failure: &AgentFailure) -> (String, &str) {
    if let AgentFailure::Turn(TurnFailure::Script { status, stderr, tag: None }) = failure {
        (status.clone(), stderr)
    } else {
        (failure.to_string(), "")
    }
}

/// Starts the next iteration, unless the maximum is reached.
fn again(decision: &mut Decision<'_>, ralph: &Ralph, agent: &Agent, input: Option<Value>) {
    let iterations = Ralph::iterations(agent);
    if iterations < decision.run.settings.max_iterations {
        let prompt = decision.definition.entry.clone();
        return enter_state(decision, agent, TagName::Reset, &prompt, input);
    }
    let failure = AgentFailure::Exhausted { iterations, until: ralph.until.clone() };
    decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
}

/// Revives a failed loop. An iteration that ended is not repeated: the command may pass now, or the
/// next iteration begins.
pub(crate) fn revive(decision: &mut Decision<'_>, ralph: &Ralph, agent: &Agent) {
    let revived = Event::AgentRevived { agent: agent.id.clone() };
    if let AgentStatus::Failed { failure: AgentFailure::Exhausted { .. }, .. } = &agent.status {
        decision.push(revived);
        next(decision, ralph, agent, None);
    } else if let AgentStatus::Failed { failure: AgentFailure::Declared { .. }, .. } = &agent.status
    {
        decision.push(revived);
        again(decision, ralph, agent, None);
    } else {
        revival::revive(decision, agent, None);
    }
}

/// Enters a state with a fresh session.
fn enter_state(
    decision: &mut Decision<'_>,
    agent: &Agent,
    tag: TagName,
    state: &StateName,
    input: Option<Value>,
) {
    decision.push(Event::Moved {
        agent: agent.id.clone(),
        tag,
        stack: StackChange::Keep,
        session: Session::Fresh,
        cwd: None,
        model: None,
        model_of: None,
        forks: 0,
        instead_of: None,
        implicit: false,
    });
    let count = agent.visits.get(state).copied().unwrap_or(0).saturating_add(1);
    decision.enter(VisitEntry {
        agent: &agent.id,
        state,
        visit: agent.visit.number.saturating_add(1),
        count,
        input,
        result_status: ResultStatus::Ok,
        session: &Session::Fresh,
    });
}

fn empty() -> Value {
    Value::Inline(String::new())
}
