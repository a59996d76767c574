//! What an earlier owner of the run left: a transcript, and perhaps a client that still writes it.
//!
//! Several clients may have written into one transcript, each after one that did not find its
//! session. What it would take to start another one is not known any more.

use std::io;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;

use super::end::tells_of_no_room;
use super::{Dialect, End, Fold as _, Step, end, failed, files, is_lost, not_started};
use crate::contract::{Answer, Started};
use crate::process::{Unreadable, cause, is_untouched, last_errors, read_transcript, was_started};

/// The step that wrote the end of a transcript, and the one that would have come next.
struct Place {
    step: Step,
    next: Option<Step>,
}

impl Place {
    fn of<D: Dialect>(dialect: &D, turn: &D::Turn, started: &Started) -> Option<Self> {
        let steps = dialect.steps(started);
        let before = dialect.place(turn, &steps);
        let mut steps = steps.into_iter().skip(before);
        Some(Self { step: steps.next()?, next: steps.next() })
    }
}

/// What a client left that has gone.
pub(super) enum Left {
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

impl Left {
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
pub(super) fn unreadable(started: &Started, Unreadable { path, source }: &Unreadable) -> String {
    let what = if *path == started.transcript { "the transcript " } else { "" };
    format!("could not read {what}{}: {}", path.display(), cause(source))
}

/// Reads the transcript of a client that has gone. A result is an outcome, unless it only says that
/// another client was to be started. Clients write before they ask the model, so one that wrote nothing is
/// free; but if somebody removed or emptied its transcript, its cost is unknown. A client that found no
/// room may have spent more than it could write.
pub(super) fn read<D: Dialect>(dialect: &D, started: &Started) -> Left {
    let mut turn = dialect.begin(started);
    let read = read_transcript(&started.transcript, &mut |heard| {
        turn.hear(&heard);
    });
    let is_missing = match read {
        Ok(()) => false,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(source) => {
            let error = Unreadable { path: started.transcript.clone(), source };
            return Left::Unreadable { why: unreadable(started, &error) };
        }
    };
    turn.look();
    let was_started = was_started(&files(started));
    let mut cost = dialect.cost(&turn);
    let is_gone = was_started && turn.hearing().is_silent() && !is_untouched(&started.transcript);
    if is_gone || (!turn.is_complete() && tells_of_no_room(&last_errors(&files(started)))) {
        cost = cost.at_least();
    }
    // A transcript that somebody removed may have held anything.
    let progressed = turn.progressed() || (was_started && is_missing);
    let session = turn.session();
    let is_conclusive = dialect.is_conclusive(&turn);
    let exited = End::Exited { status: None, stderr: String::new() };
    match Place::of(dialect, &turn, started).filter(|_| is_conclusive) {
        Some(place) => match dialect.answer(turn, exited, &place.step) {
            answer if is_lost(&answer) && place.next.is_some() => {
                Left::Nothing { cost, progressed, session }
            }
            answer => Left::Answer(answer),
        },
        None => Left::Nothing { cost, progressed, session },
    }
}

/// The answer of a client that was adopted.
pub(super) fn answer<D: Dialect>(
    dialect: &D,
    mut turn: D::Turn,
    how: End,
    started: &Started,
) -> Answer {
    let Some(place) = Place::of(dialect, &turn, started) else {
        return not_started("the plan of the turn has no conversation");
    };
    let cost = dialect.cost(&turn);
    let is_silent = turn.hearing().is_silent();
    let mut answer = end::answer(dialect, turn, how, &place.step);
    if is_lost(&answer) && place.next.is_some() {
        let why = "the session was never opened, and its prompt went with the earlier owner".into();
        return failed(TurnFailure::Transient { why }, cost);
    }
    if is_silent && !is_lost(&answer) {
        // Somebody may have emptied the transcript before the client was adopted.
        let cost = answer.cost_mut();
        *cost = cost.at_least();
    }
    answer
}
