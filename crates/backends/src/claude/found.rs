//! What an earlier owner of the run left: a transcript, and perhaps a client that still writes it.
//!
//! Several clients may have written into one transcript, each after one that did not find its
//! session. What it would take to start another one is not known any more.

use std::io;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::prices::Prices;

use super::not_started;
use super::outcome::{self, End};
use super::steps::Step;
use super::turn::{Ended, Turn};
use crate::contract::{Answer, Started};
use crate::process::read_transcript;

/// The step that wrote the end of a transcript, and the one that would have come next.
struct Place {
    step: Step,
    next: Option<Step>,
}

impl Place {
    fn of(turn: &Turn, started: &Started) -> Option<Self> {
        let lost = turn.result.as_ref().is_some_and(Ended::lost_its_session);
        let before = if lost { turn.lost.saturating_sub(1) } else { turn.lost };
        let mut steps = Step::of(&started.plan).into_iter().skip(before);
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
    },
}

/// Reads the transcript of a client that has gone. A result is an outcome, unless it only says that
/// another client was to be started.
pub(super) fn read(started: &Started, prices: &Prices) -> Left {
    let mut turn = Turn::default();
    let read = read_transcript(&started.transcript, &mut |heard| {
        turn.hear(&heard);
    });
    // Without a transcript, no client was started; one that cannot be read may have cost anything.
    if read.is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        return Left::Nothing { cost: Cost::Unknown, progressed: turn.progressed() };
    }
    let conclusive = match &turn.result {
        Some(ended) => !ended.was_cut_off() || ended.lost_its_session(),
        None => turn.flooded.is_some() || turn.unread,
    };
    let (cost, progressed) = (turn.spending.cost(prices), turn.progressed());
    let exited = End::Exited { status: None, stderr: String::new() };
    match Place::of(&turn, started).filter(|_| conclusive) {
        Some(place) => match outcome::answer(turn, exited, &place.step, prices) {
            answer if is_lost(&answer) && place.next.is_some() => {
                Left::Nothing { cost, progressed }
            }
            answer => Left::Answer(answer),
        },
        None => Left::Nothing { cost, progressed },
    }
}

/// The answer of a client that was adopted.
pub(super) fn answer(turn: Turn, end: End, started: &Started, prices: &Prices) -> Answer {
    let Some(place) = Place::of(&turn, started) else {
        return not_started("the plan of the turn has no conversation");
    };
    let cost = turn.spending.cost(prices);
    let answer = outcome::answer(turn, end, &place.step, prices);
    if is_lost(&answer) && place.next.is_some() {
        let why = "the session was never opened, and its prompt went with the earlier owner".into();
        return Answer::Failed {
            failure: TurnFailure::Transient { why },
            cost,
            denied: Vec::new(),
        };
    }
    answer
}

/// Whether the client knows no such session.
pub(super) fn is_lost(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed { failure: TurnFailure::LostSession { .. }, .. })
}
