//! The place of an agent, by name.

use crate::agent::Agent;
use crate::crayfish::key::StepKey;
use crate::crayfish::state::{Branch, Position};
use crate::run::Run;

/// Returns the state of an agent, or the key of its step.
pub fn place(run: &Run, agent: &Agent) -> String {
    let branch = run.program.steps().and_then(|flow| flow.branches.get(&agent.id));
    let elsewhere = branch.and_then(of_branch).map(|key| key.to_string());
    elsewhere.unwrap_or_else(|| agent.visit.location.to_string())
}

/// Returns the step of a branch, if it is not the step of the last visit. A loop that waits for its
/// iterations has no visit, so its key comes from the branch.
pub(super) fn of_branch(branch: &Branch) -> Option<StepKey> {
    match &branch.at {
        Position::Failed(key) => Some(key.clone()),
        // The last visit of such a branch is an earlier step, which would mislead.
        Position::Waits { .. } | Position::Round => branch.loop_key(),
        Position::Start
        | Position::Before(_)
        | Position::In(_)
        | Position::Behind(_)
        | Position::Body => None,
    }
}
