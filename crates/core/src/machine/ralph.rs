//! `ralph`: what an iteration comes to.
//!
//! An iteration is a visit of the one prompt. Only a result ends the loop, and with `--until` only
//! one that the command lets pass: the payload is carried there and back as the input of that visit.
//! Everything else, failures included, leads to the prompt again, in a fresh session. There is no
//! stack, no policy and no reminder here.

use crate::failure::{Failure, TurnFailure};
use crate::ids::StateName;
use crate::protocol::{Malformed, Reading, Tag, TagName};
use crate::run::decision::{Decision, Entry};
use crate::run::event::{Event, StackChange};
use crate::run::input::Finished;
use crate::run::program::{Command, Ralph, UNTIL};
use crate::run::warning::Warning;
use crate::scheduler::Lane;
use crate::value::Value;
use crate::workflow::OnDenied;

use crate::agent::Agent;
use crate::agent::Session;

/// A turn ended with a text.
pub(crate) fn finished(
    decision: &mut Decision<'_>,
    ralph: &Ralph,
    agent: &Agent,
    outcome: &Finished,
) {
    if decision.lane(&agent.visit.state) == Lane::Script {
        let result = agent.visit.input.clone().unwrap_or_else(empty);
        return decision.push(Event::AgentEnded { agent: agent.id.clone(), result });
    }
    let front = decision.state(&agent.visit.state).map(|state| &state.front);
    let strict = front.is_some_and(|front| front.on_denied == OnDenied::Fail);
    if strict && !outcome.denied.is_empty() {
        let tools = outcome.denied.clone();
        return failed(decision, ralph, agent, Failure::Denied { tools });
    }
    match result(decision, agent, &outcome.reading) {
        None => again(decision, ralph, agent, None),
        Some(result) if ralph.until.is_none() => {
            decision.push(Event::AgentEnded { agent: agent.id.clone(), result });
        }
        Some(result) => {
            step(decision, agent, TagName::Result, (UNTIL.into(), Some(result)));
        }
    }
}

/// The one result of a message; one that is in doubt is none.
fn result(decision: &mut Decision<'_>, agent: &Agent, reading: &Reading) -> Option<Value> {
    match reading.tags.as_slice() {
        // None is omitted before thousands are kept.
        [Tag::Result { payload }] => Some(payload.clone()),
        // Beside a valid one they have been warned of.
        [] => {
            for malformed in &reading.malformed {
                decision.warn(&agent.id, Warning::MalformedTag(malformed.clone()));
            }
            None
        }
        several => {
            let why = format!("{} of them stand where one is due", several.len() + reading.omitted);
            let malformed = Malformed { tag: TagName::Result, why };
            decision.warn(&agent.id, Warning::MalformedTag(malformed));
            None
        }
    }
}

/// Whether the loop goes on after a failure. What never began was no iteration, and a person who
/// asked for an end after an interruption gets it.
pub(crate) const fn survives(failure: &Failure) -> bool {
    match failure {
        Failure::VisitBudget { .. } | Failure::Denied { .. } => true,
        Failure::Turn(failure) => match failure {
            TurnFailure::Transient { .. }
            | TurnFailure::Timeout { .. }
            | TurnFailure::Task { .. }
            | TurnFailure::LostSession { .. }
            | TurnFailure::Script { .. }
            | TurnFailure::OutputTooLarge { .. } => true,
            TurnFailure::Quota { .. }
            | TurnFailure::Auth { .. }
            | TurnFailure::Environment { .. }
            | TurnFailure::Step { .. }
            | TurnFailure::NotStarted { .. } => false,
        },
        Failure::Protocol { .. }
        | Failure::Visits { .. }
        | Failure::OtherBackend { .. }
        | Failure::TooManyAgents { .. }
        | Failure::HeldForGood { .. }
        | Failure::TooDeep { .. }
        | Failure::Crashes { .. }
        | Failure::Stalled { .. }
        | Failure::InterruptedScript
        | Failure::Step { .. }
        | Failure::Unanswered => false,
    }
}

/// An iteration failed, or the command did not let its result pass.
pub(crate) fn failed(decision: &mut Decision<'_>, ralph: &Ralph, agent: &Agent, failure: Failure) {
    let iteration = Ralph::iterations(agent);
    match (&ralph.until, decision.lane(&agent.visit.state)) {
        (Some(command), Lane::Script) => {
            let (why, output) = explained(&failure);
            let told = format!("{} did not pass: {why}\n\n{output}", Command(command));
            decision.warn(&agent.id, Warning::ResultRefused { iteration, why });
            again(decision, ralph, agent, Some(Value::Inline(told)));
        }
        (_, Lane::Script | Lane::Prompt(_)) => {
            decision.warn(&agent.id, Warning::IterationFailed { iteration, failure });
            again(decision, ralph, agent, None);
        }
    }
}

/// Why the command did not pass, and the end of what it said.
fn explained(failure: &Failure) -> (String, &str) {
    if let Failure::Turn(TurnFailure::Script { status, stderr }) = failure {
        (status.clone(), stderr)
    } else {
        (failure.to_string(), "")
    }
}

/// The next iteration, unless there have been enough.
fn again(decision: &mut Decision<'_>, ralph: &Ralph, agent: &Agent, input: Option<Value>) {
    let iterations = Ralph::iterations(agent);
    if iterations < ralph.max_iterations {
        let prompt = decision.definition.entry.clone();
        return step(decision, agent, TagName::Reset, (prompt, input));
    }
    let until = ralph.until.clone();
    decision.warn(&agent.id, Warning::Exhausted { iterations, until });
    decision.push(Event::AgentEnded { agent: agent.id.clone(), result: empty() });
}

/// The agent enters a state with a session of its own.
fn step(
    decision: &mut Decision<'_>,
    agent: &Agent,
    tag: TagName,
    (state, input): (StateName, Option<Value>),
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
    });
    let count = agent.visits.get(&state).copied().unwrap_or(0).saturating_add(1);
    decision.enter(Entry {
        agent: &agent.id,
        state: &state,
        visit: agent.visit.number.saturating_add(1),
        count,
        input,
        session: &Session::Fresh,
    });
}

fn empty() -> Value {
    Value::Inline(String::new())
}
