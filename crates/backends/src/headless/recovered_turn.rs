//! Turns that an earlier owner of the run started.
//!
//! Their transcript is complete, or an adopted client still writes it. Several clients may have
//! written to one transcript, each after a client that did not find its session. This module never
//! starts a client, because the prompt is no longer available.

use std::io;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::run::stop::Interruption;

use super::client_end::reports_full_disk;
use super::{
    ClientEnd, ClientProtocol, SessionStep, TurnReader as _, failed, has_lost_session, not_started,
    turn_files,
};
use crate::contract::{Answer, StartedTurn};
use crate::process::{
    UnreadableFile, cause, is_untouched, last_errors, read_transcript, was_started,
};

/// The step that wrote the end of a transcript, and the step that would have come next.
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

/// Returns the answer of a client that exited before Raymond could follow it.
pub(super) fn answer_of(found: Result<Answer, String>) -> Answer {
    match found {
        // This owner lives: the turn was not interrupted by a crash of its owner.
        Ok(Answer::Interrupted { cost, progressed, session, .. }) => {
            Answer::Interrupted { by: Interruption::Stop, cost, progressed, session }
        }
        Ok(answer) => answer,
        Err(why) => failed(TurnFailure::Environment { why }, Cost::Unknown),
    }
}

/// Describes a file of a turn that cannot be read.
pub(super) fn unreadable_message(
    started: &StartedTurn,
    UnreadableFile { path, source }: &UnreadableFile,
) -> String {
    let what = if *path == started.transcript { "the transcript " } else { "" };
    format!("could not read {what}{}: {}", path.display(), cause(source))
}

/// Reads the transcript of a client that has exited. A result is the outcome, unless the result
/// only means that the next client was to be started.
///
/// Clients write before they ask the model, so a client that wrote nothing is free. If the
/// transcript was removed or emptied, the cost is unknown. A client that met a full disk may have
/// spent more than it could write. The error says why the transcript cannot be read: an answer may
/// be lost in it.
pub(super) fn from_transcript<D: ClientProtocol>(
    protocol: &D,
    started: &StartedTurn,
) -> Result<Answer, String> {
    let mut turn = protocol.begin(started);
    let read = read_transcript(&started.transcript, &mut |event| {
        turn.read_event(&event);
    });
    let is_missing = match read {
        Ok(()) => false,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(source) => {
            let error = UnreadableFile { path: started.transcript.clone(), source };
            return Err(unreadable_message(started, &error));
        }
    };
    turn.poll();
    let was_started = was_started(&turn_files(started));
    let mut cost = protocol.cost(&turn);
    // A started client always writes something before it asks the model, so an empty file was
    // emptied.
    let is_gone = was_started && turn.health().is_silent() && !is_untouched(&started.transcript);
    if is_gone || (!turn.is_complete() && reports_full_disk(&last_errors(&turn_files(started)))) {
        cost = cost.at_least();
    }
    // A removed transcript may have contained anything.
    let progressed = turn.has_progressed() || (was_started && is_missing);
    let session = turn.session();
    let is_conclusive = protocol.is_conclusive(&turn);
    let exited = ClientEnd::Exited { status: None, stderr: String::new() };
    let interrupted = Answer::Interrupted { by: Interruption::Crash, cost, progressed, session };
    Ok(match StepPosition::of(protocol, &turn, started).filter(|_| is_conclusive) {
        Some(place) => match protocol.answer(turn, exited, &place.step) {
            // The next step was never taken, so the turn must run again.
            answer if has_lost_session(&answer) && place.next.is_some() => interrupted,
            answer => answer,
        },
        None => interrupted,
    })
}

/// Returns the answer of a client that was adopted.
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
    let mut answer = super::protocol::answer(protocol, turn, how, &place.step);
    if has_lost_session(&answer) && place.next.is_some() {
        let why =
            "the session was never opened, and its prompt was lost with the earlier owner".into();
        return failed(TurnFailure::Transient { why }, cost);
    }
    if is_silent && !has_lost_session(&answer) {
        // The transcript may have been emptied before the client was adopted, so the cost is a
        // lower bound.
        let cost = answer.cost_mut();
        *cost = cost.at_least();
    }
    answer
}
