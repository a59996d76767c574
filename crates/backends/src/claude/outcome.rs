//! How a turn ended, by what the client said and by how it was observed to end.
//!
//! Typed fields decide, never an exit code and never a sentence; what is said in sentences is only
//! passed on to the person who reads it.

use std::process::ExitStatus;
use std::time::Duration;

use raymond_core::budget::Cost;
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::SessionId;
use raymond_core::prices::Prices;
use raymond_core::time::Span;

use super::fault::Fault;
use super::steps::Step;
use super::tools;
use super::turn::{Ended, Stage, Turn};
use crate::contract::{Answer, Reply};
use crate::process::LINE_MAX;

/// How a client was observed to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    /// By itself; the end of its stderr.
    Exited {
        /// Its status, where that is known.
        status: Option<ExitStatus>,
        /// The end of its stderr.
        stderr: String,
    },
    /// It had said all, and was ended.
    Settled,
    /// A clock ran out.
    TimedOut(Clock, Duration),
    /// The turn was cancelled.
    Cancelled,
    /// It is not logged in, and was ended before it tried again.
    LoggedOut,
    /// It wrote too much.
    Flooded(u64),
}

/// The answer of a turn whose last client took `step`.
pub(super) fn answer(turn: Turn, how: &How, step: &Step, prices: &Prices) -> Answer {
    let cost = turn.spending.cost(prices);
    let failed = |failure| Answer::Failed { failure, cost };
    let result = turn.result.as_ref();
    let complete = result.is_some_and(Ended::is_answer);
    match how {
        How::Cancelled if complete && turn.stage() == Stage::Done => {}
        How::Cancelled => {
            return Answer::Interrupted { cost, progressed: turn.progressed() };
        }
        _ if complete => {}
        How::Flooded(limit) => return failed(too_large(*limit)),
        How::LoggedOut => {
            return failed(logged_out(turn.login().unwrap_or("authentication_failed")));
        }
        How::TimedOut(clock, after) => {
            return failed(TurnFailure::Timeout { clock: *clock, after: span(*after) });
        }
        How::Settled | How::Exited { .. } => {}
    }
    match &turn.result {
        None => failed(without_result(&turn, how)),
        Some(ended) => match ended.verdict(step) {
            Verdict::Answer(text) => replied(turn, text, cost, step.writes()),
            Verdict::Capped => Answer::Capped { cost },
            Verdict::Lost(session) => failed(TurnFailure::LostSession { session }),
            Verdict::Failed(failure) => failed(with_reset(failure, &turn)),
        },
    }
}

/// What a result means.
enum Verdict {
    Answer(String),
    Capped,
    Lost(SessionId),
    Failed(TurnFailure),
}

impl Ended {
    /// Whether this is an answer, whatever happens to the client afterwards.
    pub(super) fn is_answer(&self) -> bool {
        let conclusion = &self.conclusion;
        match conclusion.subtype.as_str() {
            "success" => !conclusion.is_error,
            "error_max_budget_usd" => self.message.is_some(),
            _ => false,
        }
    }

    fn verdict(&self, step: &Step) -> Verdict {
        let conclusion = &self.conclusion;
        if self.lost_its_session() {
            return match step.needs() {
                Some(session) => Verdict::Lost(session.clone()),
                None => Verdict::Failed(transient("the client lost the session that it opened")),
            };
        }
        match conclusion.subtype.as_str() {
            "success" if !conclusion.is_error => {
                Verdict::Answer(self.whole())
            }
            "success" => Verdict::Failed(self.api_error()),
            "error_max_budget_usd" => match &self.message {
                Some(text) => Verdict::Answer(text.clone()),
                None => Verdict::Capped,
            },
            "error_max_turns" => {
                Verdict::Failed(transient("the client stopped at its own limit of turns"))
            }
            "error_during_execution" => {
                let why = format!("the client was cut off{}", self.told());
                Verdict::Failed(TurnFailure::Transient { why })
            }
            other => {
                let why = format!("{other}{}", self.told());
                Verdict::Failed(TurnFailure::Task { why })
            }
        }
    }

    /// The final message. Where that has several blocks of text, the result holds the last one only.
    fn whole(&self) -> String {
        let result = self.conclusion.result.clone().unwrap_or_default();
        let message = self.message.as_ref().filter(|message| message.ends_with(&result));
        message.cloned().unwrap_or(result)
    }

    /// The API did not answer, or the model refused.
    fn api_error(&self) -> TurnFailure {
        if let Some(explanation) = &self.trouble.refusal {
            let why = match explanation {
                Some(explanation) => format!("the model refused: {}", short(explanation)),
                None => "the model refused".to_owned(),
            };
            return TurnFailure::Task { why };
        }
        let status = self.conclusion.api_error_status;
        let kind = self.trouble.kind.as_deref();
        let mut why = kind.unwrap_or("no answer of the API").to_owned();
        if let Some(status) = status {
            why = format!("{why} ({status})");
        }
        let why = format!("{why}{}", self.told());
        match Fault::of(status, kind) {
            Fault::Auth => logged_out(&why),
            Fault::Quota => TurnFailure::Quota { until: None, why },
            Fault::Transient => TurnFailure::Transient { why },
            Fault::Task => TurnFailure::Task { why },
        }
    }

    /// `: what the client says`, for a person.
    fn told(&self) -> String {
        let said = self.conclusion.result.iter().chain(&self.conclusion.errors).next();
        said.filter(|text| !text.trim().is_empty())
            .map(|text| format!(": {}", short(text)))
            .unwrap_or_default()
    }
}

fn replied(turn: Turn, text: String, cost: Cost, planned: &SessionId) -> Answer {
    let denied = turn.denied.iter();
    let denied = denied.map(|call| tools::permission(&call.tool_name, &call.tool_input)).collect();
    let session = turn.session.map(SessionId::new).filter(|session| session != planned);
    Answer::Replied(Box::new(Reply {
        text,
        cost,
        session,
        model: turn.model,
        denied,
        warnings: turn.warnings.into_vec(),
    }))
}

fn without_result(turn: &Turn, how: &How) -> TurnFailure {
    if turn.unread {
        return too_large(LINE_MAX as u64);
    }
    let mut why = "the client ended without a result".to_owned();
    if let How::Exited { status, stderr } = how {
        if let Some(status) = status {
            why = format!("{why} ({status})");
        }
        if !stderr.is_empty() {
            why = format!("{why}: {}", short(stderr));
        }
    }
    TurnFailure::Transient { why }
}

/// A usage limit says elsewhere when it is lifted.
fn with_reset(failure: TurnFailure, turn: &Turn) -> TurnFailure {
    match failure {
        TurnFailure::Quota { why, .. } => TurnFailure::Quota { until: turn.limited_until, why },
        other => other,
    }
}

fn logged_out(why: &str) -> TurnFailure {
    let why = format!(
        "{why}; start `claude` and use /login, or set ANTHROPIC_API_KEY; then resume the run"
    );
    TurnFailure::Auth { why }
}

fn too_large(limit: u64) -> TurnFailure {
    TurnFailure::OutputTooLarge { limit, head: String::new(), tail: String::new() }
}

fn transient(why: &str) -> TurnFailure {
    TurnFailure::Transient { why: why.to_owned() }
}

fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    const LENGTH: usize = 300;
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests;
