//! Turns the findings about turns in flight into the first inputs of a new owner.
//!
//! The caller holds the lock and has looked for the client of each turn in flight. A client that
//! still runs reports later; every other turn has an outcome. All outcomes and the resume itself
//! are one batch, so a crash during recovery leaves nothing half done. This module does no IO, so
//! that the simulator uses it too; the search is in `owned::recover_turns`.

use raymond_core::budget::{Cost, Micros};
use raymond_core::run::input::Resume;
use raymond_core::run::outcome::Outcome;
use raymond_core::run::stop::{Interruption, StopMode, StopOrigin};
use raymond_core::run::{Input, Phase, Run, Settings};
use raymond_core::scheduler::Turn;

/// The traces of a client that died together with its owner.
#[derive(Debug, Clone, Copy)]
pub struct ClientTraces {
    /// Whether the client was started, but its transcript is gone.
    pub lost_transcript: bool,
    /// Whether the machine has restarted since the client wrote.
    pub restarted: bool,
}

/// Corrects the cost of a client that died together with its owner: its transcript may be
/// incomplete.
pub fn with_possible_cost<T>(outcome: Outcome<T>, traces: ClientTraces) -> Outcome<T> {
    let Outcome::Interrupted { by: Interruption::Crash, cost, progressed, session } = outcome
    else {
        return outcome;
    };
    let by = Interruption::Crash;
    // A client that wrote nothing is free, but nothing is known of a client whose transcript is
    // gone.
    if traces.lost_transcript && cost == Cost::Reported(Micros::ZERO) {
        return Outcome::Interrupted { by, cost: Cost::Unknown, progressed: true, session };
    }
    // Clients do not sync their transcripts, so a restart may lose the end.
    let cost = if traces.restarted { cost.at_least() } else { cost };
    Outcome::Interrupted { by, cost, progressed, session }
}

/// Returns the input that reports the end of a turn.
pub fn settled(turn: &Turn, outcome: Outcome) -> Input {
    Input::Settled { turn: turn.id.clone(), attempt: turn.attempt, outcome }
}

/// Returns the first inputs of a new owner: the outcomes, and the resume.
pub fn resume_inputs(reports: Vec<Input>, settings: Settings) -> Vec<Input> {
    let mut inputs = reports;
    inputs.push(Input::Resume(Box::new(Resume { settings, is_wake: false })));
    inputs
}

/// Returns the inputs that stop a run without an owner: the outcomes, and the request.
///
/// A run ignores a key that it has answered before. If the run was resumed since, the request
/// therefore uses `new_key`: otherwise the run would continue and record turns as started that no
/// process runs.
pub fn stop_inputs(
    run: &Run,
    reports: Vec<Input>,
    mode: StopMode,
    key: &str,
    new_key: &str,
) -> Vec<Input> {
    // A run that is stopping or has ended knows the key because this request was recorded, and
    // repeating it must have no effect.
    let answered = run.phase == Phase::Open && run.keys.contains(key);
    let key = if answered { new_key } else { key };
    let mut inputs = reports;
    inputs.push(Input::Stop { mode, by: StopOrigin::Command, key: key.to_owned() });
    inputs
}

#[cfg(test)]
mod tests;
