//! What became of the turns that were in flight when the last owner went away.
//!
//! The order matters: the lock is held; whatever was left running is ended or adopted; a complete
//! outcome that was found is the outcome; everything else was interrupted. All of it, and the
//! resume itself, is one batch: a crash in the middle of a recovery leaves nothing half done.

use raymond_core::budget::Cost;
use raymond_core::ids::SessionId;
use raymond_core::run::effect::in_flight;
use raymond_core::run::input::{Interruption, Outcome, Resume, StopMode};
use raymond_core::run::{Input, Phase, Run, Settings};
use raymond_core::scheduler::Turn;

/// What a look for a turn in flight found.
#[derive(Debug)]
pub enum FoundTurn {
    /// It still runs, and its outcome will arrive.
    Running,
    /// It had finished; this is its outcome.
    Finished(Outcome),
    /// It is gone.
    Absent {
        /// What it cost all the same.
        cost: Cost,
        /// Whether it had written anything new.
        progressed: bool,
        /// The session, when the client could not take the one that was chosen.
        session: Option<SessionId>,
    },
}

/// What a recovery reports about each turn in flight.
pub fn turn_reports<E>(
    run: &Run,
    mut attach: impl FnMut(&Turn) -> Result<FoundTurn, E>,
) -> Result<Vec<Input>, E> {
    let mut inputs = Vec::new();
    for turn in in_flight(run) {
        let outcome = match attach(turn)? {
            FoundTurn::Running => continue,
            FoundTurn::Finished(outcome) => outcome,
            FoundTurn::Absent { cost, progressed, session } => {
                Outcome::Interrupted { by: Interruption::Crash, cost, progressed, session }
            }
        };
        inputs.push(Input::Settled { turn: turn.id.clone(), attempt: turn.attempt, outcome });
    }
    Ok(inputs)
}

/// Returns what a transcript tells about the cost of a dead client once the machine has restarted. The end
/// of the transcript may be lost, so the known amount is only a lower bound.
pub fn after_restart(cost: Cost) -> Cost {
    cost.at_least()
}

/// Everything that a new owner has to say first: what was reported, and that it goes on.
pub fn resume_inputs(reports: Vec<Input>, settings: Settings) -> Vec<Input> {
    let mut inputs = reports;
    inputs.push(Input::Resume(Box::new(Resume { settings })));
    inputs
}

/// Everything to say about a run that nobody drives and somebody wants to end: what was reported, and
/// the request. A run that answered it once and was resumed since is asked again, as `afresh`:
/// otherwise it would go on, and turns would be recorded as started that nobody runs.
pub fn stop_inputs(
    run: &Run,
    reports: Vec<Input>,
    mode: StopMode,
    (key, afresh): (&str, &str),
) -> Vec<Input> {
    let answered = run.phase == Phase::Open && run.keys.contains(key);
    let key = if answered { afresh } else { key };
    let mut inputs = reports;
    inputs.push(Input::Stop { mode, key: key.to_owned() });
    inputs
}

#[cfg(test)]
mod tests;
