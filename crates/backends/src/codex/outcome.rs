//! How a turn ended: by typed fields of the stream and of the rollout, never by an exit code.
//!
//! One sentence of stderr is read: that a thread is not known, because the client says so nowhere else.

use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;

use super::fault::Fault;
use super::preflight::Problem;
use super::turn::{Conclusion, Form, Trouble, Turn};
use crate::contract::{Answer, Reply};
use crate::headless::{End, Fold as _, Step, died, shortened, too_large};
use crate::process::LINE_MAX;

/// How the turn ended for whoever asked. The step is the one that the last client took.
pub(super) fn answer(turn: Turn, end: End, step: &Step) -> Answer {
    let cost = turn.cost();
    if let Some(failure) = strayed(&turn, step) {
        return Answer::Failed { failure, cost, denied: turn.denied, session: None };
    }
    let session = opened(&turn, step);
    let failure = match (&turn.result, end) {
        (Some(Conclusion::Completed), _) if turn.hearing.unread => too_large(LINE_MAX as u64),
        (Some(Conclusion::Completed), _) => match &turn.trouble {
            Some(Trouble::Unpriced(model)) => unpriced(model),
            _ if turn.is_unseen() => unseen(&turn),
            _ => return replied(turn, session),
        },
        (Some(Conclusion::Failed { message }), _) => match failed(&turn, message) {
            Some(failure) => failure,
            None => return capped(turn, session),
        },
        (None, End::Hopeless) => match &turn.trouble {
            Some(Trouble::Capped) => return capped(turn, session),
            Some(Trouble::Limited(why)) => limited(&turn, why.clone()),
            Some(Trouble::LoggedOut(why)) => login(why),
            Some(Trouble::Unseen) => unseen(&turn),
            Some(Trouble::Unpriced(model)) => unpriced(model),
            Some(Trouble::Strayed { .. }) | None => {
                TurnFailure::Transient { why: died(&End::Hopeless) }
            }
        },
        (None, End::Cancelled) => {
            return Answer::Interrupted { cost, progressed: turn.progressed(), session };
        }
        (None, End::TimedOut { clock, after }) => TurnFailure::Timeout { clock, after },
        (None, end) => incomplete(&turn, &end, step),
    };
    Answer::Failed { failure, cost, denied: turn.denied, session }
}

/// The thread, when it is not the one that was planned.
fn opened(turn: &Turn, step: &Step) -> Option<SessionId> {
    turn.session.clone().filter(|id| id != step.writes())
}

/// A client that writes another thread than the one that it was to go on in, or that it named first.
fn strayed(turn: &Turn, step: &Step) -> Option<TurnFailure> {
    match (&turn.trouble, step, &turn.session) {
        (Some(Trouble::Strayed { from, to }), _, _) => {
            Some(Step::Resume(from.clone()).strayed("thread", to))
        }
        (_, Step::Resume(id), Some(named)) if id != named => Some(step.strayed("thread", named)),
        (_, Step::Branch { from, .. }, Some(named)) if from == named => {
            Some(step.strayed("thread", named))
        }
        _ => None,
    }
}

fn unseen(turn: &Turn) -> TurnFailure {
    TurnFailure::Task { why: unwatched(turn) }
}

fn unwatched(turn: &Turn) -> String {
    let sessions = turn.books.home().join("sessions");
    let lack = if turn.books.is_readable() {
        "does not count the tokens of its requests in a way that could be read, below"
    } else {
        "keeps no file of its thread that could be read in"
    };
    format!(
        "the client {lack} {}: what the turn costs cannot be watched, and it has a share of the budget",
        sessions.display()
    )
}

fn replied(turn: Turn, session: Option<SessionId>) -> Answer {
    let (cost, model) = (turn.cost(), turn.books.model());
    let text = turn.message.unwrap_or_default();
    let structured = match turn.form {
        Form::Text => None,
        Form::Json => serde_json::from_str(&text).ok(),
    };
    let warnings = turn.hearing.warnings.into_vec();
    let denied = turn.denied;
    let reply = Reply::new(text, cost);
    Answer::Replied(Box::new(Reply { session, structured, model, denied, warnings, ..reply }))
}

fn capped(turn: Turn, session: Option<SessionId>) -> Answer {
    let (cost, progressed) = (turn.cost(), turn.progressed());
    Answer::Capped { cost, progressed, denied: turn.denied, session }
}

/// What the client says of a turn that failed; none when it stopped at a budget.
fn failed(turn: &Turn, message: &str) -> Option<TurnFailure> {
    let why = if message.trim().is_empty() { "it does not say why" } else { message };
    let why = shortened(why);
    Some(match Fault::of(turn.books.problem(), message) {
        Fault::Auth => login(&why),
        Fault::Quota => limited(turn, why),
        Fault::Transient => TurnFailure::Transient { why },
        Fault::Task => TurnFailure::Task { why },
        Fault::Capped => return None,
    })
}

fn limited(turn: &Turn, why: String) -> TurnFailure {
    TurnFailure::Quota { until: turn.books.limited_until(), why }
}

/// The same would follow from every other turn.
fn unpriced(model: &str) -> TurnFailure {
    TurnFailure::Task { why: Problem::Unpriced(model.to_owned()).told() }
}

fn login(said: &str) -> TurnFailure {
    let why = format!(
        "run `codex login`, or set the key that its provider is configured with; the client says: \
         {said}"
    );
    TurnFailure::Auth { why }
}

/// A client that has not concluded.
fn incomplete(turn: &Turn, end: &End, step: &Step) -> TurnFailure {
    if let Some(limit) = turn.hearing.flooded {
        return too_large(limit);
    }
    if let (Some(session), End::Exited { stderr, .. }) = (step.needs(), end) {
        let lost = format!("no rollout found for thread id {session}");
        if turn.session.is_none() && !turn.may_have_asked() && stderr.contains(&lost) {
            return TurnFailure::LostSession { session: session.clone() };
        }
    }
    if turn.is_unseen() {
        let why = format!("{}; {}", died(end), unwatched(turn));
        return TurnFailure::Task { why };
    }
    TurnFailure::Transient { why: died(end) }
}

#[cfg(test)]
mod tests;
