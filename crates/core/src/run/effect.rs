//! Effects: the work that the engine does once the record that causes it is durable.
//!
//! An effect is complete. Together with the [`RunContext`](super::RunContext) and the stored values
//! of the run it can be executed in another process, which has neither the run nor its definition.
//! Effects are not journalled: after a crash they are derived again from the turns in flight.

use serde::{Deserialize, Serialize};

use crate::ids::TurnId;
use crate::scheduler::Turn;

use super::state::Run;
use super::turn_spec::TurnSpec;

/// One piece of work for the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Start(TurnSpec),
    /// End a turn in flight. Its outcome still arrives as an input.
    Cancel {
        turn: TurnId,
        attempt: u32,
    },
    /// The run has ended, so its owner may exit.
    Finish,
}

/// Returns the turns that were started and not settled, which a recovery has to look for.
pub fn in_flight(run: &Run) -> impl Iterator<Item = &Turn> {
    run.scheduler.in_flight.iter().filter_map(|agent| run.scheduler.turns.get(agent))
}
