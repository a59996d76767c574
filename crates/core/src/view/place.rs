//! Where an agent is, by name.

use crate::crayfish::flow::At;
use crate::machine::Agent;
use crate::run::Run;

/// The state that an agent is in. In a run of steps it is the key of its step; where it is at something
/// that is no visit, such as a loop whose iterations it waits for, the key of that.
pub fn place(run: &Run, agent: &Agent) -> String {
    let strand = run.flow.as_ref().and_then(|flow| flow.strands.get(&agent.id));
    let elsewhere = strand.and_then(|strand| match &strand.at {
        At::Failed(key) => Some(key.to_string()),
        At::Waits { .. } | At::Round => strand.loop_key().map(|key| key.to_string()),
        At::Start | At::Before(_) | At::In(_) | At::Behind(_) | At::Body => None,
    });
    elsewhere.unwrap_or_else(|| agent.visit.state.to_string())
}
