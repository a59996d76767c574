//! What an earlier owner of the run left: a transcript, and perhaps a client that still writes it.
//!
//! Several clients may have written into one transcript, each after one that did not find its
//! session. What it would take to start another one is not known any more.

use std::io;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;

use super::client_end::reports_full_disk;
use super::{
    ClientEnd, ClientProtocol, SessionStep, TurnReader as _, client_end, failed, has_lost_session,
    not_started, turn_files,
};
use crate::contract::{Answer, StartedTurn};
use crate::process::{Unreadable, cause, is_untouched, last_errors, read_transcript, was_started};

/// The step that wrote the end of a transcript, and the one that would have come next.
struct StepPosition {
    step: SessionStep,
    next: Option<SessionStep>,
}

impl StepPosition {
    fn of<D: ClientProtocol>(protocol: &D, turn: &D::Turn, started: &StartedTurn) -> Option<Self> {
        let steps = protocol.steps(started);
        let before = protocol.step_index(turn, &steps);
        let mut steps = steps.into_iter().skip(before);
        Some(Self { step: steps.next()?, next: steps.next() })
    }
}

/// What a client left that has gone.
pub(super) enum RecoveredTurn {
    /// Its answer.
    Answer(Answer),
    /// No answer.
    Nothing {
        /// What it cost all the same.
        cost: Cost,
        /// Whether it had said anything.
        progressed: bool,
        /// The session that it opened under an id of its own.
        session: Option<SessionId>,
    },
    /// Its answer may be in a transcript that cannot be read.
    Unreadable {
        /// Why.
        why: String,
    },
}

impl RecoveredTurn {
    /// The answer of a client that was gone when it was to be followed.
    pub(super) fn into_answer(self) -> Answer {
        match self {
            Self::Answer(answer) => answer,
            Self::Nothing { cost, progressed, session } => {
                Answer::Interrupted { cost, progressed, session }
            }
            Self::Unreadable { why } => failed(TurnFailure::Environment { why }, Cost::Unknown),
        }
    }
}

/// Says that a file of a turn cannot be read.
pub(super) fn unreadable_message(
    started: &StartedTurn,
    Unreadable { path, source }: &Unreadable,
) -> String {
    let what = if *path == started.transcript { "the transcript " } else { "" };
    format!("could not read {what}{}: {}", path.display(), cause(source))
}

/// Reads the transcript of a client that has gone. A result is an outcome, unless it only says that
/// another client was to be started. Clients write before they ask the model, so one that wrote nothing is
/// free; but if somebody removed or emptied its transcript, its cost is unknown. A client that found no
/// room may have spent more than it could write.
pub(super) fn from_transcript<D: ClientProtocol>(
    protocol: &D,
    started: &StartedTurn,
) -> RecoveredTurn {
    let mut turn = protocol.begin(started);
    let read = read_transcript(&started.transcript, &mut |event| {
        turn.read_event(&event);
    });
    let is_missing = match read {
        Ok(()) => false,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(source) => {
            let error = Unreadable { path: started.transcript.clone(), source };
            return RecoveredTurn::Unreadable { why: unreadable_message(started, &error) };
        }
    };
    turn.poll();
    let was_started = was_started(&turn_files(started));
    let mut cost = protocol.cost(&turn);
    let is_gone = was_started && turn.health().is_silent() && !is_untouched(&started.transcript);
    if is_gone || (!turn.is_complete() && reports_full_disk(&last_errors(&turn_files(started)))) {
        cost = cost.at_least();
    }
    // A transcript that somebody removed may have held anything.
    let progressed = turn.has_progressed() || (was_started && is_missing);
    let session = turn.session();
    let is_conclusive = protocol.is_conclusive(&turn);
    let exited = ClientEnd::Exited { status: None, stderr: String::new() };
    match StepPosition::of(protocol, &turn, started).filter(|_| is_conclusive) {
        Some(place) => match protocol.answer(turn, exited, &place.step) {
            answer if has_lost_session(&answer) && place.next.is_some() => {
                RecoveredTurn::Nothing { cost, progressed, session }
            }
            answer => RecoveredTurn::Answer(answer),
        },
        None => RecoveredTurn::Nothing { cost, progressed, session },
    }
}

/// The answer of a client that was adopted.
pub(super) fn adopted_answer<D: ClientProtocol>(
    protocol: &D,
    mut turn: D::Turn,
    how: ClientEnd,
    started: &StartedTurn,
) -> Answer {
    let Some(place) = StepPosition::of(protocol, &turn, started) else {
        return not_started("the plan of the turn has no conversation");
    };
    let cost = protocol.cost(&turn);
    let is_silent = turn.health().is_silent();
    let mut answer = client_end::answer(protocol, turn, how, &place.step);
    if has_lost_session(&answer) && place.next.is_some() {
        let why = "the session was never opened, and its prompt went with the earlier owner".into();
        return failed(TurnFailure::Transient { why }, cost);
    }
    if is_silent && !has_lost_session(&answer) {
        // Somebody may have emptied the transcript before the client was adopted.
        let cost = answer.cost_mut();
        *cost = cost.at_least();
    }
    answer
}
