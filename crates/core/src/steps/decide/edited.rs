//! A run adopts an edited document: it begins again at the top, and keeps all results.
//!
//! The interpreter skips every step that has a result, so the branches come to where the edited
//! document needs them. This is simple and always right: an edit may add steps before the one that
//! failed, or lead a condition elsewhere. [`crate::crayfish::edits`] says which edits are allowed.

use std::collections::BTreeSet;

use crate::agent::AgentStatus;
use crate::crayfish::key::StepKey;
use crate::crayfish::name::StepId;
use crate::crayfish::state::{Branch, Position, StepEvent, StepsState};
use crate::ids::AgentId;
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::run::state::Run;

use super::{leave, step_of};

/// Begins the document again; `changed` are the steps that differ from the earlier document.
pub(crate) fn begin_again(decision: &mut Decision<'_>, changed: &[StepId]) {
    let Some(state) = decision.run.program.steps() else { return };
    let main = AgentId::main();
    let changed: BTreeSet<&StepId> = changed.iter().collect();
    let (settled, edited) = (settled(decision.run, state, &changed), edited(state, &changed));
    let is_settled: BTreeSet<&StepKey> = settled.iter().collect();
    let repeated =
        state.results.iter().filter(|(key, stored)| !stored.ok && !is_settled.contains(key));
    let repeated: Vec<StepKey> = repeated.map(|(key, _)| key.clone()).collect();
    let mut branches: Vec<(&AgentId, &Branch)> = state.branches.iter().collect();
    // The inner ones first: a branch is younger than the one whose loop it is in.
    branches.sort_by_key(|(_, branch)| std::cmp::Reverse(branch.number));
    for (id, _) in branches {
        step_of(decision, id, StepEvent::Ended);
        // The agent of a collected failure has ended already.
        if let Some(agent) = decision.run.agents.get(id).filter(|agent| agent.id != main) {
            leave(decision, agent);
        }
    }
    let main_status = decision.run.agents.get(&main).map(|agent| &agent.status);
    if let Some(AgentStatus::Failed { .. }) = main_status {
        decision.push(Event::AgentRevived { agent: main.clone() });
    }
    let (born, parent) = (Vec::new(), None);
    step_of(decision, &main, StepEvent::Begun { born, parent, settled, edited, repeated });
}

/// Returns the collected failures of steps that were not edited.
fn settled(run: &Run, state: &StepsState, changed: &BTreeSet<&StepId>) -> Vec<StepKey> {
    // The agent of a collected failure has ended, but its branch may still be there.
    let branches = state.branches.iter().filter(|(id, _)| run.agents.contains_key(*id));
    let open: BTreeSet<StepKey> = branches.filter_map(|(_, branch)| open(branch)).collect();
    let failed = state.results.iter().filter(|(_, stored)| !stored.ok).map(|(key, _)| key);
    let is_repeated = |key: &StepKey| changed.contains(&key.step) || state.repeated.contains(key);
    let settled = failed.filter(|key| !is_repeated(key) && !open.contains(*key));
    settled.cloned().collect()
}

/// Returns the step that a branch has to repeat or to finish.
fn open(branch: &Branch) -> Option<StepKey> {
    match &branch.at {
        Position::Failed(key) => Some(key.clone()),
        Position::Before(step) | Position::In(step) => Some(branch.key(step)),
        Position::Start
        | Position::Behind(_)
        | Position::Body
        | Position::Round
        | Position::Waits { .. } => None,
    }
}

/// Returns the edited agent steps that have asked but have no result.
fn edited(state: &StepsState, changed: &BTreeSet<&StepId>) -> Vec<StepKey> {
    let is_done = |key: &StepKey| state.results.get(key).is_some_and(|stored| stored.ok);
    let asked = state.attempts.keys().filter(|key| changed.contains(&key.step) && !is_done(key));
    asked.cloned().collect()
}
