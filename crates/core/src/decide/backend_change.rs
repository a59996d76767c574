//! Whether a run can go on under other states or other settings: every conversation stays with the
//! backend that holds it.
//!
//! A turn that only opens a conversation may move to another backend, as long as the run is at
//! rest; [`super::resume`] then begins it anew there, and says so.

use crate::agent::Agent;
use crate::machine::session_backend::{SessionMismatch, between};
use crate::scheduler::{Lane, Turn};
use crate::workflow::Definition;

use super::Refusal;
use crate::run::settings::Settings;
use crate::run::state::{Phase, Run};

/// Whether every agent finds its conversation, and those of its returns, with the backends that
/// would answer.
pub fn check(run: &Run, definition: &Definition, settings: &Settings) -> Result<(), Refusal> {
    for agent in run.agents.values() {
        let lane = settings.lane(definition, &agent.visit.state);
        let own = match run.scheduler.turns.get(&agent.id) {
            Some(turn) => turned(run, settings, agent, (turn, lane)),
            None => {
                let own = (&agent.session, agent.holder.as_ref());
                between(settings, own, (&agent.visit.state, lane))
            }
        };
        own.map_err(|crossing| refusal(agent, crossing))?;
    }
    check_returns(run, definition, settings)
}

/// Only the returns: the visits that are under way end with the backends they began with.
pub(super) fn check_returns(
    run: &Run,
    definition: &Definition,
    settings: &Settings,
) -> Result<(), Refusal> {
    for agent in run.agents.values() {
        for frame in &agent.stack {
            let lane = settings.lane(definition, &frame.state);
            between(settings, (&frame.session, frame.holder.as_ref()), (&frame.state, lane))
                .map_err(|crossing| refusal(agent, crossing))?;
        }
    }
    Ok(())
}

fn refusal(agent: &Agent, crossing: SessionMismatch) -> Refusal {
    let SessionMismatch { state, answers, holds } = crossing;
    Refusal::OtherBackend { agent: agent.id.clone(), state, answers, holds }
}

/// A turn at the scheduler keeps its backend, unless it can move.
fn turned(
    run: &Run,
    settings: &Settings,
    agent: &Agent,
    (turn, lane): (&Turn, Lane),
) -> Result<(), SessionMismatch> {
    let at_rest = matches!(run.phase, Phase::Ended(_));
    match (&turn.lane, lane) {
        (Lane::Prompt(holds), Lane::Prompt(answers))
            if settings.real_backend(holds) != settings.real_backend(&answers)
                && !(at_rest && turn.opens()) =>
        {
            let (state, holds) = (agent.visit.state.clone(), holds.clone());
            Err(SessionMismatch { state, answers, holds })
        }
        (Lane::Prompt(_) | Lane::Script, _) => Ok(()),
    }
}
