//! The outcome of a turn, decided by typed fields, never by an exit code.
//!
//! Only an unknown session is recognized by its text, because the client has no typed field for it.

use raymond_core::failure::TurnFailure;
use raymond_core::prices::Prices;
use raymond_core::run::outcome::{Finished, Reply};
use raymond_core::run::stop::Interruption;

use super::error_class::ErrorClass;
use super::tools;
use super::turn::{ClaudeTurn, RoundResult};
use crate::contract::Answer;
use crate::headless::{
    ClientEnd, SessionStep, TurnReader as _, death_message, output_too_large, shorten,
};
use crate::process::LINE_MAX;

/// Returns the answer of the turn; `step` is the step of the last client.
pub(super) fn answer(
    turn: ClaudeTurn,
    end: ClientEnd,
    step: &SessionStep,
    prices: &Prices,
) -> Answer {
    let cost = turn.spending.cost(prices);
    // Checked first: a result in the wrong session must never count, because it would continue
    // another conversation.
    if let Some(named) = turn.announced_session().filter(|named| *named != step.written_session()) {
        let failure = step.wrong_session_failure("session", named);
        return Answer::Failed { failure, cost, denied: denied(&turn), session: None };
    }
    let session = turn.session();
    let complete = turn.result.as_ref().filter(|ended| !ended.was_interrupted());
    let failure = match (complete, end) {
        (Some(ended), _) => match verdict(ended, &turn) {
            Verdict::Answer(text) => {
                let structured = ended.conclusion.structured_output.clone();
                let capped = ended.conclusion.was_capped();
                let reply = Reply { text, structured };
                return replied(turn, Finished { capped, ..Finished::new(reply, cost) });
            }
            Verdict::Capped => {
                let (progressed, denied) = (turn.has_progressed(), denied(&turn));
                return Answer::Capped { cost, progressed, denied, session };
            }
            Verdict::Failed(failure) => failure,
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
        (None, ClientEnd::Aborted) => login_failure(turn.login().unwrap_or_default()),
        (None, end) => incomplete(&turn, &end, step),
    };
    Answer::Failed { failure, cost, denied: denied(&turn), session }
}

/// Returns the denied calls in the form of permission rules.
fn denied(turn: &ClaudeTurn) -> Vec<String> {
    let calls = turn.denied.iter();
    calls.map(|call| tools::permission_rule(&call.tool, &call.input)).collect()
}

enum Verdict {
    Answer(String),
    Capped,
    Failed(TurnFailure),
}

fn verdict(ended: &RoundResult, turn: &ClaudeTurn) -> Verdict {
    let conclusion = &ended.conclusion;
    let why = || error_text(conclusion.result.as_deref(), &conclusion.errors);
    Verdict::Failed(match conclusion.subtype.as_str() {
        "success" if conclusion.is_error => api_failure(ended, turn),
        "success" => return Verdict::Answer(full_text(ended)),
        "error_max_budget_usd" => {
            // The client checks the cap after each request, so the message may already be complete.
            return ended.message.clone().map_or(Verdict::Capped, Verdict::Answer);
        }
        // Not a failure: the caller that asked with a schema checks the text for JSON itself.
        "error_max_structured_output_retries" => {
            return Verdict::Answer(ended.message.clone().unwrap_or_else(why));
        }
        "error_max_turns" => {
            let why = "the client stopped at its own limit of turns".into();
            TurnFailure::Transient { why }
        }
        _ => TurnFailure::Task { why: why() },
    })
}

/// Returns the final message.
fn full_text(ended: &RoundResult) -> String {
    // If it has several blocks of text, the result contains only the last one, so the joined
    // message is preferred.
    let result = ended.conclusion.result.clone().unwrap_or_default();
    let message = ended.message.as_ref().filter(|message| message.ends_with(&result));
    message.cloned().unwrap_or(result)
}

/// Returns the failure for an API error.
fn api_failure(ended: &RoundResult, turn: &ClaudeTurn) -> TurnFailure {
    let why = error_text(ended.conclusion.result.as_deref(), &ended.conclusion.errors);
    if let Some(refusal) = &ended.api_error.refusal {
        let why = refusal.explanation.as_deref().map_or(why, shorten);
        return TurnFailure::Task { why: format!("the model refused: {why}") };
    }
    match ended.api_error.class(ended.conclusion.api_error_status) {
        ErrorClass::Auth => login_failure(&why),
        ErrorClass::Quota => {
            let until = ended.api_error.limit_ends_at().or(turn.limited_until);
            TurnFailure::Quota { until, why }
        }
        ErrorClass::Transient => TurnFailure::Transient { why },
        ErrorClass::Task => TurnFailure::Task { why },
    }
}

fn replied(turn: ClaudeTurn, finished: Finished<Reply>) -> Answer {
    let (denied, session) = (denied(&turn), turn.session());
    Answer::Finished(Box::new(Finished {
        session,
        model: turn.model,
        denied,
        warnings: turn.health.warnings.into_vec(),
        ..finished
    }))
}

/// Returns the failure of a client without a usable result.
fn incomplete(turn: &ClaudeTurn, end: &ClientEnd, step: &SessionStep) -> TurnFailure {
    if let Some(limit) = turn.health.flooded {
        return output_too_large(limit);
    }
    if let Some(ended) = &turn.result {
        return match step.required_session() {
            Some(session) if ended.has_lost_session() => {
                TurnFailure::LostSession { session: session.clone() }
            }
            _ => {
                let why = error_text(None, &ended.conclusion.errors);
                TurnFailure::Transient { why: format!("the client was interrupted: {why}") }
            }
        };
    }
    // The skipped line may have been the result.
    if turn.health.unread {
        return output_too_large(LINE_MAX as u64);
    }
    TurnFailure::Transient { why: death_message(end) }
}

fn login_failure(said: &str) -> TurnFailure {
    let said = if said.is_empty() { "it is not logged in" } else { said };
    let why = format!("run `claude /login` or set ANTHROPIC_API_KEY; the client says: {said}");
    TurnFailure::Auth { why }
}

/// Returns the client's own error text.
fn error_text(result: Option<&str>, errors: &[String]) -> String {
    let result = result.filter(|text| !text.trim().is_empty());
    let text = result.map_or_else(|| errors.join("; "), str::to_owned);
    if text.is_empty() { "no reason given".to_owned() } else { shorten(&text) }
}

#[cfg(test)]
mod tests;
