//! Failures of branches: an invalid output, a program that failed, and how far a failure reaches.
//!
//! A failure ends the iteration of the innermost loop that collects failures, or else the run. All
//! other decisions about steps are in the module above.

use serde_json::{Value as Json, json};

use super::{Question, ask, end, is_room, leave, order, program_and_state, step, step_of, visit};
use crate::agent::{Agent, Session};
use crate::crayfish::definition::StepsDefinition;
use crate::crayfish::document::{OnError, Order};
use crate::crayfish::error_code::ErrorCode;
use crate::crayfish::key::StepKey;
use crate::crayfish::problem::Problem;
use crate::crayfish::state::{Branch, StepEvent};
use crate::crayfish::stored::Stored;
use crate::crayfish::template::Unfilled;
use crate::crayfish::walk::Stuck;
use crate::failure::{AgentFailure, TurnFailure};
use crate::ids::AgentId;
use crate::protocol::Notice;
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::run::state::{Phase, Run};
use crate::scheduler::Turn;

/// Returns whether a resume repeats a failed step. Failures that follow from the document alone
/// would be the same again.
pub(crate) fn is_revived(run: &Run, failure: &AgentFailure) -> bool {
    let AgentFailure::Step { code, .. } = failure else { return true };
    // Fresh attempts cost money. A user gives them by a resume, after the failure has ended the
    // run; the call of a tool must not.
    let has_ended = matches!(run.phase, Phase::Ended(_));
    let may_ask_again = has_ended && !run.program.is_answered_by_caller();
    *code == ErrorCode::ExecFailed || *code == ErrorCode::AgentOutputSchemaFailed && may_ask_again
}

/// Asks for the next attempt with the errors of this one, or fails if none is left.
pub(super) fn invalid(
    decision: &mut Decision<'_>,
    agent: &Agent,
    next: Question,
    session: &Session,
    errors: &[Problem],
) {
    let Question { turn, key, attempt, limit } = next;
    if attempt >= limit {
        let first = errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        let message = format!("no output of {limit} was valid{first}");
        // The errors of the last output are part of the result: the caller may have no other
        // record.
        return exhausted(decision, agent, key, message, errors);
    }
    let (attempt, errors) = (attempt.saturating_add(1), errors.to_vec());
    step(decision, agent, StepEvent::Asked { key: key.clone(), attempt, errors, limit: None });
    ask(decision, turn, &key, session);
}

/// Fails a step that has no attempt left.
pub(super) fn exhausted(
    decision: &mut Decision<'_>,
    agent: &Agent,
    key: StepKey,
    message: String,
    errors: &[Problem],
) {
    let code = ErrorCode::AgentOutputSchemaFailed;
    let problems: Vec<Json> = errors.iter().map(Problem::to_json).collect();
    let left =
        json!({ "ok": false, "error": code.as_str(), "message": message, "errors": problems });
    fail(decision, agent, Stuck::new(code, key, message), Some(Stored::inline(left, false)));
}

/// Handles a failed program: retries it while attempts are left.
pub(crate) fn failed(
    decision: &mut Decision<'_>,
    agent: &Agent,
    turn: &Turn,
    failure: &TurnFailure,
) {
    let Some(key) = agent.visit.location.step().cloned() else { return };
    let Some((steps, _)) = program_and_state(decision) else { return };
    let (stored, is_pointless) = if let TurnFailure::Step { result, again, .. } = failure {
        (Some(result.clone()), !again)
    } else {
        (None, false)
    };
    // Retries count repetitions, but `tries` counts all attempts, so `>=` is right below.
    let retry = agent.visit.retries.saturating_add(1);
    if is_pointless || retry >= steps.tries(&key) {
        let stuck = Stuck::new(ErrorCode::ExecFailed, key, failure.to_string());
        return fail(decision, agent, stuck, stored);
    }
    let (turn, until) = (turn.id.clone(), decision.at);
    let of = Some(steps.tries(&key).saturating_sub(1));
    // `until` is now: a failed program is repeated without a delay.
    decision.push(Event::RetryAt { turn: turn.clone(), until, retry, of });
    decision.requeue(&turn, Notice::Retried);
}

// A step that fails before it starts still gets a visit, so that views show where its branch is.
pub(super) fn fail_early(decision: &mut Decision<'_>, agent: &Agent, stuck: Stuck) {
    visit(decision, agent, &stuck.key);
    fail(decision, agent, stuck, None);
}

/// Fails a branch at a step whose failure a loop had collected before the document was edited. The
/// step does not run again.
pub(super) fn fail_again(decision: &mut Decision<'_>, agent: &Agent, key: StepKey) {
    let Some((steps, state)) = program_and_state(decision) else { return };
    let known = state.results.get(&key).cloned();
    let result = known.as_ref().and_then(Stored::json);
    let text = |field: &str| result?.get(field)?.as_str().map(str::to_owned);
    let code = match steps.agent(&key) {
        Some(_) => text("error").and_then(|code| ErrorCode::named(&code)),
        None => None,
    };
    let message = text("message").or_else(|| text("error")).unwrap_or_default();
    let stuck = Stuck::new(code.unwrap_or(ErrorCode::ExecFailed), key, message);
    // If the loop collects the failure again, nothing happens at the step, so it gets no visit.
    if reach(decision, agent) == Reach::Run {
        visit(decision, agent, &stuck.key);
    }
    fail(decision, agent, stuck, known);
}

/// Fails a branch at a step: this ends its iteration if a loop collects failures, or fails the run.
pub(super) fn fail(decision: &mut Decision<'_>, agent: &Agent, stuck: Stuck, left: Option<Stored>) {
    let Stuck { code, key, message, variable } = stuck;
    let reach = reach(decision, agent);
    let is_loop = decision.definition.steps.as_deref().is_some_and(|steps| steps.is_loop(&key));
    // A result without room is replaced by a short one: the failure must still be recorded.
    let left = left.filter(|left| is_room(decision, &left.value));
    let stored = left.or_else(|| {
        // A loop has no result, unless a loop around it collects failures.
        let result = json!({ "ok": false, "error": code.as_str(), "message": message });
        (!is_loop || reach != Reach::Run).then(|| Stored::inline(result, false))
    });
    match (reach, stored) {
        (Reach::Iteration, Some(stored)) => {
            // The failed result takes the place of a good one, and the loop continues without the
            // iteration.
            step(decision, agent, StepEvent::Done { key, stored });
            end(decision, agent);
        }
        (Reach::Around, stored) => {
            // The branch stays, so that its parent can count it and fail in turn; only its agent
            // ends.
            step(decision, agent, StepEvent::Failed { key, stored, contained: true });
            leave(decision, agent);
        }
        (Reach::Run | Reach::Iteration, stored) => {
            step(decision, agent, StepEvent::Failed { key, stored, contained: false });
            let failure = AgentFailure::Step { code, message, variable };
            decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
        }
    }
}

/// Fails a run whose output is too large. All its steps keep their results.
pub(super) fn fail_output(decision: &mut Decision<'_>, agent: &Agent, why: &Unfilled) {
    // This name only shows where the run has failed: no step has to have it.
    let Ok(name) = "output".parse() else { return };
    let key = StepKey::plain(name);
    visit(decision, agent, &key);
    step(decision, agent, StepEvent::Failed { key, stored: None, contained: false });
    let (code, message) = (ErrorCode::TooLarge, format!("at /output: {why}"));
    let failure = AgentFailure::Step { code, message, variable: None };
    decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
}

/// Fails a branch for a reason outside its step: a client that cannot answer, or too many crashes
/// of the owner.
pub(crate) fn break_off(decision: &mut Decision<'_>, agent: &Agent, failure: AgentFailure) {
    let Some(key) = agent.visit.location.step().cloned() else { return };
    if reach(decision, agent) != Reach::Run {
        let stuck = Stuck::new(ErrorCode::AgentFailed, key, failure.to_string());
        return fail(decision, agent, stuck, None);
    }
    // The failure keeps its kind: no resume would repeat an `AgentFailure::Step` of this code.
    step(decision, agent, StepEvent::Failed { key, stored: None, contained: false });
    decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
}

/// Fails a branch whose iterations failed and no longer run, if a loop around it collects failures.
/// The branch fails as the first of them did.
pub(super) fn collapse(decision: &mut Decision<'_>, agent: &Agent) {
    let Some((_, state)) = program_and_state(decision) else { return };
    let parent = Some(&agent.id);
    let inner = state.branches.iter().filter(|(_, branch)| branch.parent.as_ref() == parent);
    let mut inner: Vec<(&AgentId, &Branch)> = inner.collect();
    // Map order is by id; the first failure is the one of the oldest iteration.
    inner.sort_by_key(|(_, branch)| branch.number);
    let first = inner.iter().find_map(|(_, branch)| branch.failed_at().cloned());
    for (id, _) in inner {
        step_of(decision, id, StepEvent::Ended);
        if let Some(inner) = decision.run.agents.get(id) {
            leave(decision, inner);
        }
    }
    let Some(key) = first else { return };
    match reach(decision, agent) {
        Reach::Iteration => {
            step(decision, agent, StepEvent::Reused { key });
            end(decision, agent);
        }
        // `Run` cannot happen: the iterations failed in a loop that a loop further out collects.
        Reach::Around | Reach::Run => {
            step(decision, agent, StepEvent::Failed { key, stored: None, contained: true });
            leave(decision, agent);
        }
    }
}

/// The extent of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It ends the iteration that it happens in.
    Iteration,
    /// It ends an iteration further out.
    Around,
    /// It fails the run.
    Run,
}

fn reach(decision: &Decision<'_>, agent: &Agent) -> Reach {
    let Some((steps, state)) = program_and_state(decision) else { return Reach::Run };
    let mut reach = Reach::Iteration;
    let mut branch = state.branches.get(&agent.id);
    while let Some(this) = branch {
        if on_error(steps, this) == Some(OnError::Collect) {
            return reach;
        }
        // Collected further out: the whole iteration there ends, not only this one.
        reach = Reach::Around;
        branch = this.parent.as_ref().and_then(|parent| state.branches.get(parent));
    }
    Reach::Run
}

/// Returns how the loop of a branch handles failures.
fn on_error(steps: &StepsDefinition, branch: &Branch) -> Option<OnError> {
    match order(steps, branch)? {
        Order::Parallel { on_error, .. } => Some(on_error),
        Order::Sequential => None,
    }
}
