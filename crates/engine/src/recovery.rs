//! Turns the findings about turns in flight into the first inputs of a new owner.
//!
//! The caller holds the lock and has looked for the client of each turn. A client that still runs
//! reports later, a complete answer is the outcome, and everything else was interrupted. All outcomes
//! and the resume itself are one batch, so a crash during recovery leaves nothing half done. This module
//! does no IO, so that the simulator uses it too; the search is in `owned::recover_turns`.

use raymond_core::budget::Cost;
use raymond_core::ids::SessionId;
use raymond_core::run::effect::in_flight;
use raymond_core::run::input::{Outcome, Resume};
use raymond_core::run::stop::{Interruption, StopMode};
use raymond_core::run::{Input, Phase, Run, Settings};
use raymond_core::scheduler::Turn;

/// The state of a turn in flight, as a new owner found it.
#[derive(Debug)]
pub enum FoundTurn {
    /// Its client still runs and will report.
    Running,
    /// Its client had finished, with this outcome.
    Finished(Outcome),
    /// Its client is dead and left no complete answer.
    Absent {
        /// The cost until then.
        cost: Cost,
        /// Whether the client had written anything new.
        progressed: bool,
        /// The session, if the client chose another one than Raymond.
        session: Option<SessionId>,
    },
}

/// Returns the outcome of each turn in flight that has ended.
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

/// Returns the cost of a dead client after a restart of the machine. The end of its transcript may be
/// lost, so the known amount is only a lower bound.
pub fn after_restart(cost: Cost) -> Cost {
    cost.at_least()
}

/// Returns the first inputs of a new owner: the outcomes, and the resume.
pub fn resume_inputs(reports: Vec<Input>, settings: Settings) -> Vec<Input> {
    let mut inputs = reports;
    inputs.push(Input::Resume(Box::new(Resume { settings })));
    inputs
}

/// Returns the inputs that stop a run without an owner: the outcomes, and the request.
///
/// A run ignores a key that it has answered before. If the run was resumed since, the request therefore
/// uses `new_key`: otherwise the run would continue and record turns as started that no process runs.
pub fn stop_inputs(
    run: &Run,
    reports: Vec<Input>,
    mode: StopMode,
    key: &str,
    new_key: &str,
) -> Vec<Input> {
    let answered = run.phase == Phase::Open && run.keys.contains(key);
    let key = if answered { new_key } else { key };
    let mut inputs = reports;
    inputs.push(Input::Stop { mode, key: key.to_owned() });
    inputs
}

#[cfg(test)]
mod tests;
