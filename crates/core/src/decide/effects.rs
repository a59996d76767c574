//! The effects that follow from recorded events.

use crate::program;
use crate::run::effect::{Effect, in_flight};
use crate::run::event::Event;
use crate::run::state::Run;
use crate::run::stop::StopMode;
use crate::run::turn_spec::{TurnHeader, TurnSpec};
use crate::scheduler::{Turn, TurnPhase};
use crate::workflow::Definition;

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
            let spec = current.and_then(|turn| turn_spec(run, definition, turn));
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
        } else if let Event::AgentCancelling { agent, .. } = event {
            // As after a recall. The outcome charges the turn, and then the agent leaves.
            let turn = run.scheduler.turns.get(agent);
            effects.extend(
                turn.map(|turn| Effect::Cancel { turn: turn.id.clone(), attempt: turn.attempt }),
            );
        } else if let Event::RunEnded { .. } = event {
            effects.push(Effect::Finish);
        }
    }
    effects
}

/// Returns the specification of a turn in flight.
pub fn turn_spec(run: &Run, definition: &Definition, turn: &Turn) -> Option<TurnSpec> {
    // A later event of the same batch may have ended the turn.
    if !matches!(turn.phase, TurnPhase::Running { .. }) {
        return None;
    }
    let agent = run.agents.get(&turn.id.agent)?;
    let header = TurnHeader {
        turn: turn.id.clone(),
        attempt: turn.attempt,
        location: agent.visit.location.clone(),
        cwd: agent.cwd.clone(),
        environment: run.settings.environment.clone(),
        handed: agent.visit.handed.clone(),
    };
    let work = program::work(run, definition, agent, turn)?;
    Some(TurnSpec { header: Box::new(header), work })
}
