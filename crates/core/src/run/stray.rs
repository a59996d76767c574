//! Whether a run can go on under other states or other settings: every conversation stays with the
//! backend that holds it.
//!
//! A turn that only opens a conversation may move to another backend, as long as the run is at
//! rest; [`super::resume`] then begins it anew there, and says so.

use crate::desk::{Lane, Turn};
use crate::ids::StateName;
use crate::machine::crossing::{Crossing, between};
use crate::machine::{Agent, SessionPlan};
use crate::workflow::Definition;

use super::decide::Refusal;
use super::settings::Settings;
use super::state::{Phase, Run};

/// Whether every agent finds its conversation, and those of its returns, with the backends that
/// would answer.
pub fn check(run: &Run, definition: &Definition, settings: &Settings) -> Result<(), Refusal> {
    let lane = |state: &StateName| settings.lane(definition, state);
    for agent in run.agents.values() {
        let own = match run.desk.turns.get(&agent.id) {
            Some(turn) => turned(run, agent, turn, lane(&agent.visit.state)),
            None => {
                let lane = lane(&agent.visit.state);
                between(&agent.session, agent.holder.as_ref(), (&agent.visit.state, lane))
            }
        };
        let returns = agent.stack.iter().map(|frame| {
            between(&frame.session, frame.holder.as_ref(), (&frame.state, lane(&frame.state)))
        });
        [own].into_iter().chain(returns).collect::<Result<(), _>>().map_err(|crossing| {
            let Crossing { state, answers, holds } = crossing;
            Refusal::OtherBackend { agent: agent.id.clone(), state, answers, holds }
        })?;
    }
    Ok(())
}

/// A turn at the desk keeps its backend, unless it can move.
fn turned(run: &Run, agent: &Agent, turn: &Turn, lane: Lane) -> Result<(), Crossing> {
    let at_rest = matches!(run.phase, Phase::Ended(_));
    match (&turn.lane, lane) {
        (Lane::Prompt(holds), Lane::Prompt(answers))
            if *holds != answers && !(at_rest && opens(turn)) =>
        {
            let (state, holds) = (agent.visit.state.clone(), holds.clone());
            Err(Crossing { state, answers, holds })
        }
        (Lane::Prompt(_) | Lane::Script, _) => Ok(()),
    }
}

fn opens(turn: &Turn) -> bool {
    matches!(turn.plan, SessionPlan::Fresh(_))
}
