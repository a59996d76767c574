//! The place of an agent, by name.

use crate::agent::Agent;
use crate::crayfish::state::Position;
use crate::run::Run;

/// Returns the state of an agent, or the key of its step. A loop that waits for its iterations has
/// no visit, so its key comes from the branch.
pub fn place(run: &Run, agent: &Agent) -> String {
    let branch = run.program.steps().and_then(|flow| flow.branches.get(&agent.id));
    let elsewhere = branch.and_then(|branch| match &branch.at {
        Position::Failed(key) => Some(key.to_string()),
        // The last visit of such a branch is an earlier step, which would mislead.
        Position::Waits { .. } | Position::Round => branch.loop_key().map(|key| key.to_string()),
        Position::Start
        | Position::Before(_)
        | Position::In(_)
        | Position::Behind(_)
        | Position::Body => None,
    });
    elsewhere.unwrap_or_else(|| agent.visit.location.to_string())
}
