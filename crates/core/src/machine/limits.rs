//! `max_visits` and `then`: where a transition really leads.

use crate::failure::Failure;
use crate::ids::{BackendName, StateName};
use crate::run::decision::Decision;
use crate::workflow::Definition;

use super::session_backend::{SessionMismatch, crossing};
use crate::agent::Agent;
use crate::agent::Session;

/// Where a transition leads, once limits are weighed.
pub(crate) struct Destination {
    /// The state that is entered.
    pub(crate) state: StateName,
    /// The backend that answers it, where it is a prompt.
    pub(crate) answers: Option<BackendName>,
    /// How often the agent has entered it then.
    pub(crate) count: u32,
    /// The state that was meant, when its limit led elsewhere.
    pub(crate) instead_of: Option<StateName>,
}

impl Destination {
    /// The backend that a model is for, which may have been named for nobody so far: then it is for
    /// whoever answers here.
    pub(crate) fn model_of(
        &self,
        model: Option<&String>,
        of: Option<&BackendName>,
    ) -> Option<BackendName> {
        model.and_then(|_| of.or(self.answers.as_ref())).cloned()
    }

    /// Whether a conversation that `holder` holds can go on there.
    pub(crate) fn reached(
        &self,
        decision: &Decision<'_>,
        session: &Session,
        holder: Option<&BackendName>,
    ) -> Result<(), Failure> {
        let instead_of = self.instead_of.clone();
        crossing(decision, session, holder, &self.state).map_err(
            |SessionMismatch { state, answers, holds }| Failure::OtherBackend {
                state,
                answers,
                holds,
                instead_of,
            },
        )
    }
}

/// The destination of a transition to `state`. Only the destination changes: stack, session and
/// payload stay as they were emitted.
pub(crate) fn within_limits(
    decision: &Decision<'_>,
    agent: &Agent,
    state: StateName,
) -> Result<Destination, Failure> {
    let definition = decision.definition;
    let Some(limit) = exhausted(definition, agent, &state) else {
        return Ok(arrive(decision, agent, state, None));
    };
    let then = definition.states.get(&state).and_then(|state| state.front.then.as_deref());
    let instead = then.and_then(|then| definition.resolve(then).ok()).map(|then| &then.name);
    match instead {
        Some(instead) if exhausted(definition, agent, instead).is_none() => {
            Ok(arrive(decision, agent, instead.clone(), Some(state)))
        }
        Some(_) | None => Err(Failure::Visits { state, limit }),
    }
}

fn arrive(
    decision: &Decision<'_>,
    agent: &Agent,
    state: StateName,
    instead_of: Option<StateName>,
) -> Destination {
    let count = agent.visits.get(&state).copied().unwrap_or(0).saturating_add(1);
    let answers = decision.lane(&state).backend().cloned();
    Destination { state, answers, count, instead_of }
}

/// The limit of the state, when the agent has reached it.
fn exhausted(definition: &Definition, agent: &Agent, state: &StateName) -> Option<u32> {
    let limit = definition.states.get(state)?.front.max_visits?;
    let visits = agent.visits.get(state).copied().unwrap_or(0);
    (visits >= limit).then_some(limit)
}
