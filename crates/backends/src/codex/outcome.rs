//! The outcome of a turn, decided by typed fields of the stream and the rollout, never by an exit
//! code.
//!
//! Five reports of the client have no type, so Raymond recognizes them by their text: an unknown
//! thread (a sentence on stderr) here, and the others in `error_class`.

use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;

use super::error_class::ErrorClass;
use super::preflight::PreflightProblem;
use super::turn::{AbortReason, CodexTurn, Conclusion, Form};
use crate::contract::Answer;
use crate::headless::{
    ClientEnd, SessionStep, TurnReader as _, death_message, output_too_large, shorten,
};
use crate::process::LINE_MAX;
use raymond_core::run::outcome::{Finished, Reply};
use raymond_core::run::stop::Interruption;

/// Returns the answer of the turn; `step` is the step of the last client.
pub(super) fn answer(turn: CodexTurn, end: ClientEnd, step: &SessionStep) -> Answer {
    let cost = turn.cost();
    // Checked first: a result in the wrong thread must never count.
    if let Some(failure) = wrong_thread(&turn, step) {
        return Answer::Failed { failure, cost, denied: turn.denied, session: None };
    }
    let session = opened_session(&turn, step);
    let failure = match (&turn.result, end) {
        // The unreadable line may have been the final message, so an older message must not replace
        // it.
        (Some(Conclusion::Completed), _) if turn.health.unread => output_too_large(LINE_MAX as u64),
        (Some(Conclusion::Completed), _) => match &turn.abort_reason {
            Some(AbortReason::Unpriced(model)) => unpriced_failure(model),
            _ if turn.is_spending_unknown() => unknown_spending_failure(&turn),
            _ => return replied(turn, session),
        },
        (Some(Conclusion::Failed { message }), _) => match reported_failure(&turn, message) {
            Some(failure) => failure,
            None => return capped(turn, session),
        },
        (None, ClientEnd::Aborted) => match &turn.abort_reason {
            Some(AbortReason::Capped) => return capped(turn, session),
            Some(AbortReason::Limited(why)) => quota_failure(&turn, why.clone()),
            Some(AbortReason::LoggedOut(why)) => login_failure(why),
            Some(AbortReason::UnknownSpending) => unknown_spending_failure(&turn),
            Some(AbortReason::Unpriced(model)) => unpriced_failure(model),
            Some(AbortReason::WrongThread { .. }) | None => {
                TurnFailure::Transient { why: death_message(&ClientEnd::Aborted) }
            }
        },
        (None, ClientEnd::Cancelled) => {
            return Answer::Interrupted {
                by: Interruption::Stop,
                cost,
                progressed: turn.has_progressed(),
                session,
            };
        }
        (None, ClientEnd::TimedOut { clock, after }) => TurnFailure::Timeout { clock, after },
        (None, end) => incomplete(&turn, &end, step),
    };
    Answer::Failed { failure, cost, denied: turn.denied, session }
}

/// Returns the thread, if it is not the planned one.
fn opened_session(turn: &CodexTurn, step: &SessionStep) -> Option<SessionId> {
    turn.session.clone().filter(|id| id != step.written_session())
}

/// Returns the failure of a client that wrote to another thread than the one to continue, or than
/// the one it named first.
fn wrong_thread(turn: &CodexTurn, step: &SessionStep) -> Option<TurnFailure> {
    match (&turn.abort_reason, step, &turn.session) {
        (Some(AbortReason::WrongThread { from, to }), _, _) => {
            Some(SessionStep::Resume(from.clone()).wrong_session_failure("thread", to))
        }
        (_, SessionStep::Resume(id), Some(named)) if id != named => {
            Some(step.wrong_session_failure("thread", named))
        }
        // A branch under the id of its origin has changed the original conversation.
        (_, SessionStep::Branch { from, .. }, Some(named)) if from == named => {
            Some(step.wrong_session_failure("thread", named))
        }
        _ => None,
    }
}

fn unknown_spending_failure(turn: &CodexTurn) -> TurnFailure {
    TurnFailure::Task { why: unwatched_message(turn) }
}

fn unwatched_message(turn: &CodexTurn) -> String {
    let sessions = turn.thread_usage.home().join("sessions");
    let lack = if turn.thread_usage.is_readable() {
        "the client writes no readable token counts to its files"
    } else {
        "the client writes no readable file of its thread"
    };
    format!(
        "could not watch the cost of a turn that has a budget share: {lack} in {}",
        sessions.display()
    )
}

fn replied(turn: CodexTurn, session: Option<SessionId>) -> Answer {
    let (cost, model) = (turn.cost(), turn.thread_usage.model());
    let text = turn.message.unwrap_or_default();
    let structured = match turn.form {
        Form::Text => None,
        // The client does not validate the JSON; the caller does.
        Form::Json => serde_json::from_str(&text).ok(),
    };
    let warnings = turn.health.warnings.into_vec();
    let denied = turn.denied;
    let finished = Finished::new(Reply { text, structured }, cost);
    Answer::Finished(Box::new(Finished { session, model, denied, warnings, ..finished }))
}

fn capped(turn: CodexTurn, session: Option<SessionId>) -> Answer {
    let (cost, progressed) = (turn.cost(), turn.has_progressed());
    Answer::Capped { cost, progressed, denied: turn.denied, session }
}

/// Returns the failure that the client reported, or `None` if the client stopped at a budget.
fn reported_failure(turn: &CodexTurn, message: &str) -> Option<TurnFailure> {
    let why = if message.trim().is_empty() { "no reason given" } else { message };
    let why = shorten(why);
    Some(match ErrorClass::from_problem(turn.thread_usage.problem(), message) {
        ErrorClass::Auth => login_failure(&why),
        ErrorClass::Quota => quota_failure(turn, why),
        ErrorClass::Transient => TurnFailure::Transient { why },
        ErrorClass::Task => TurnFailure::Task { why },
        ErrorClass::Capped => return None,
    })
}

fn quota_failure(turn: &CodexTurn, why: String) -> TurnFailure {
    TurnFailure::Quota { until: turn.thread_usage.limited_until(), why }
}

/// Returns the failure for a model without a price.
fn unpriced_failure(model: &str) -> TurnFailure {
    // A retry would fail in the same way.
    TurnFailure::Task { why: PreflightProblem::Unpriced(model.to_owned()).message() }
}

fn login_failure(said: &str) -> TurnFailure {
    let why = format!(
        "run `codex login`, or set the key that its provider is configured with; the client says: \
         {said}"
    );
    TurnFailure::Auth { why }
}

/// Returns the failure of a client without a result.
fn incomplete(turn: &CodexTurn, end: &ClientEnd, step: &SessionStep) -> TurnFailure {
    if let Some(limit) = turn.health.flooded {
        return output_too_large(limit);
    }
    if let (Some(session), ClientEnd::Exited { stderr, .. }) = (step.required_session(), end) {
        let lost = format!("no rollout found for thread id {session}");
        // The text alone does not decide: a client that asked the model did find its thread.
        if turn.session.is_none() && !turn.may_have_asked() && stderr.contains(&lost) {
            return TurnFailure::LostSession { session: session.clone() };
        }
    }
    if turn.is_spending_unknown() {
        let why = format!("{}; {}", death_message(end), unwatched_message(turn));
        return TurnFailure::Task { why };
    }
    TurnFailure::Transient { why: death_message(end) }
}

#[cfg(test)]
mod tests;
