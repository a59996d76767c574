//! Applies `max_visits` and `then`, which decide where a transition really leads.
//!
//! The policy of the state that the agent leaves applies to the state that the tag names, and not
//! to `then` (docs/frontmatter.md).

use crate::failure::AgentFailure;
use crate::ids::{BackendName, StateName};
use crate::run::decision::Decision;
use crate::workflow::Definition;

use super::session_backend::{SessionMismatch, check_session_backend};
use crate::agent::Agent;
use crate::agent::Session;

/// The destination of a transition after limits were applied.
pub(crate) struct Destination {
    /// The state that the agent enters.
    pub(crate) state: StateName,
    /// The backend that answers the state, if it is a prompt.
    pub(crate) answers: Option<BackendName>,
    /// How often the agent has entered the state, this time included.
    pub(crate) count: u32,
    /// The state that the tag named, if its limit led to another one.
    pub(crate) instead_of: Option<StateName>,
}

impl Destination {
    /// Returns the backend that a model is meant for.
    pub(crate) fn model_of(
        &self,
        model: Option<&String>,
        of: Option<&BackendName>,
    ) -> Option<BackendName> {
        // A model that no backend has used yet is meant for the backend that answers here.
        model.and_then(|_| of.or(self.answers.as_ref())).cloned()
    }

    /// Checks that the conversation can continue at this destination.
    pub(crate) fn check_session(
        &self,
        decision: &Decision<'_>,
        session: &Session,
        holder: Option<&BackendName>,
    ) -> Result<(), AgentFailure> {
        let (state, instead_of) = (self.state.clone(), self.instead_of.clone());
        check_session_backend(decision, session, holder, &self.state).map_err(
            |SessionMismatch { answers, holds }| AgentFailure::OtherBackend {
                state,
                answers,
                holds,
                instead_of,
            },
        )
    }
}

/// Returns the destination of a transition to `state`. Only the destination changes: stack, session
/// and payload stay as the tag set them.
pub(crate) fn within_limits(
    decision: &Decision<'_>,
    agent: &Agent,
    state: StateName,
) -> Result<Destination, AgentFailure> {
    let definition = decision.definition;
    let Some(limit) = exhausted(definition, agent, &state) else {
        return Ok(destination(decision, agent, state, None));
    };
    let then = definition.states.get(&state).and_then(|state| state.front.then.as_deref());
    // A `then` that does not resolve is an error when a reachable state is parsed, so `ok` hides
    // no mistake.
    let instead = then.and_then(|then| definition.resolve(then).ok()).map(|then| &then.name);
    match instead {
        // Only one redirection: following a chain of `then` could loop for ever.
        Some(instead) if exhausted(definition, agent, instead).is_none() => {
            Ok(destination(decision, agent, instead.clone(), Some(state)))
        }
        Some(_) | None => Err(AgentFailure::Visits { state, limit }),
    }
}

fn destination(
    decision: &Decision<'_>,
    agent: &Agent,
    state: StateName,
    instead_of: Option<StateName>,
) -> Destination {
    let count = agent.visits.get(&state).copied().unwrap_or(0).saturating_add(1);
    let answers = decision.state_lane(&state).backend().cloned();
    Destination { state, answers, count, instead_of }
}

/// Returns the limit of the state if the agent has used it up.
fn exhausted(definition: &Definition, agent: &Agent, state: &StateName) -> Option<u32> {
    let limit = definition.states.get(state)?.front.max_visits?;
    // Each worker counts its own visits, so parallel workers cannot use up a limit for each other.
    let visits = agent.visits.get(state).copied().unwrap_or(0);
    (visits >= limit).then_some(limit)
}
