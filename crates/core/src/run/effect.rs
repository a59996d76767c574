//! Effects: the work that the engine does once the record that causes it is durable.
//!
//! An effect is complete. Together with the [`RunContext`](super::RunContext) and the stored values
//! of the run it can be executed in another process, which has neither the run nor its definition.
//! Effects are not journalled: after a crash they are derived again from the turns in flight.

use serde::{Deserialize, Serialize};

use crate::ids::TurnId;
use crate::run::stop::StopMode;
use crate::scheduler::Turn;
use crate::workflow::Definition;

use super::event::Event;
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

/// Returns the effects of `events`, which `run` already includes.
pub fn effects<'e>(
    run: &Run,
    definition: &Definition,
    events: impl IntoIterator<Item = &'e Event>,
) -> Vec<Effect> {
    let mut effects = Vec::new();
    for event in events {
        if let Event::TurnStarted { turn, attempt, .. } = event {
            // The turn may have been replaced by a later event of the same batch.
            let current = run.scheduler.turns.get(&turn.agent);
            let current =
                current.filter(|current| current.id == *turn && current.attempt == *attempt);
            let spec = current.and_then(|turn| TurnSpec::of(run, definition, turn));
            effects.extend(spec.map(Effect::Start));
        } else if let Event::StopRequested { mode, .. } = event
            && *mode != StopMode::AfterTurn
        {
            effects.extend(
                in_flight(run)
                    .map(|turn| Effect::Cancel { turn: turn.id.clone(), attempt: turn.attempt }),
            );
        } else if let Event::TurnRecalled { turn, attempt } = event {
            // Only the client ends here. Its outcome charges the turn, which then continues.
            effects.push(Effect::Cancel { turn: turn.clone(), attempt: *attempt });
        } else if let Event::RunEnded { .. } = event {
            effects.push(Effect::Finish);
        }
    }
    effects
}

/// Returns the turns that were started and not settled, which a recovery has to look for.
pub fn in_flight(run: &Run) -> impl Iterator<Item = &Turn> {
    run.scheduler.in_flight.iter().filter_map(|agent| run.scheduler.turns.get(agent))
}
