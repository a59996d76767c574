//! Checks whether a run can continue with other states or other settings: every conversation stays
//! with the backend that has it, because no backend can read the session of another one.
//!
//! A turn that only opens a conversation may change its backend while the run is at rest;
//! [`super::resume`] then starts it with the new backend and warns.

use crate::agent::{Agent, Location};
use crate::machine::session_backend::{SessionMismatch, check_lane};
use crate::scheduler::{Lane, Turn};
use crate::workflow::Definition;

use super::Refusal;
use crate::run::settings::Settings;
use crate::run::state::{Phase, Run};

/// Checks the conversation of every agent, and those that its returns continue.
pub fn check(run: &Run, definition: &Definition, settings: &Settings) -> Result<(), Refusal> {
    for agent in run.agents.values() {
        let lane = run.program.lane(settings, definition, &agent.visit.location);
        let own = match run.scheduler.turns.get(&agent.id) {
            // A turn that is known decides for itself: the agent's session is the one before this
            // turn.
            Some(turn) => check_turn(run, settings, turn, lane),
            None => {
                let (session, holder) = (&agent.session, agent.holder.as_ref());
                check_lane(settings, session, holder, lane)
            }
        };
        own.map_err(|mismatch| refusal(agent, agent.visit.location.clone(), mismatch))?;
    }
    check_returns(run, definition, settings)
}

/// Checks only the returns: visits under way end with the backend they began with.
pub(super) fn check_returns(
    run: &Run,
    definition: &Definition,
    settings: &Settings,
) -> Result<(), Refusal> {
    for agent in run.agents.values() {
        for frame in &agent.stack {
            let lane = settings.state_lane(definition, &frame.state);
            check_lane(settings, &frame.session, frame.holder.as_ref(), lane)
                .map_err(|mismatch| refusal(agent, frame.state.clone().into(), mismatch))?;
        }
    }
    Ok(())
}

fn refusal(agent: &Agent, location: Location, mismatch: SessionMismatch) -> Refusal {
    let SessionMismatch { answers, holds } = mismatch;
    Refusal::OtherBackend { agent: agent.id.clone(), location, answers, holds }
}

/// Checks a queued or running turn: it keeps its backend, unless it has no conversation yet and the
/// run is at rest.
fn check_turn(
    run: &Run,
    settings: &Settings,
    turn: &Turn,
    lane: Lane,
) -> Result<(), SessionMismatch> {
    // A run that has not ended may have a client in flight that is about to open its session.
    let at_rest = matches!(run.phase, Phase::Ended(_));
    match (&turn.lane, lane) {
        (Lane::Prompt(holds), Lane::Prompt(answers))
            if settings.real_backend(holds) != settings.real_backend(&answers)
                && !(at_rest && turn.opens()) =>
        {
            Err(SessionMismatch { answers, holds: holds.clone() })
        }
        (Lane::Prompt(_) | Lane::Script, _) => Ok(()),
    }
}
