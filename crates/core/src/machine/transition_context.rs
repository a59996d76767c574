//! The agent that transition: what it may do, and the events of what it does.

use std::collections::BTreeMap;

use crate::ids::{BackendName, StateName};
use crate::protocol::{Fault, Tag, TagName};
use crate::run::decision::{Decision, Entry};
use crate::run::event::{Event, StackChange};
use crate::value::Value;
use crate::workflow::policy::Refused;

use super::limits::Destination;
use super::session_backend::{SessionMismatch, crossing};
use crate::agent::Session;
use crate::agent::{Agent, PendingTransition};
use crate::machine::blocked::Blocked;

/// The agent that transition, and what it is at this moment.
#[derive(Clone, Copy)]
pub(crate) struct TransitionContext<'a> {
    pub(crate) agent: &'a Agent,
    /// Its conversation, once the turn that just ended is counted.
    pub(crate) session: &'a Session,
    /// The backend that holds it.
    pub(crate) holder: Option<&'a BackendName>,
    /// The directories that the tags name and that exist.
    pub(crate) directories: &'a BTreeMap<String, String>,
}

impl<'a> TransitionContext<'a> {
    /// An agent whose turn was counted earlier.
    pub(crate) fn of(agent: &'a Agent, directories: &'a BTreeMap<String, String>) -> Self {
        Self { agent, session: &agent.session, holder: agent.holder.as_ref(), directories }
    }

    /// Whether the policy of the state that is left allows this.
    pub(super) fn check(
        self,
        decision: &Decision<'_>,
        tag: TagName,
        target: Option<&StateName>,
        then: Option<&StateName>,
    ) -> Result<(), Blocked> {
        let Some(state) = decision.state(&self.agent.visit.state) else {
            return Ok(());
        };
        let named = || target.map(ToString::to_string);
        state.front.policy.check(tag, target, then).map_err(|refused| {
            let target = match refused {
                Refused::Tag => None,
                Refused::Target => named(),
            };
            Blocked::Fault(Fault::Forbidden { tag, target })
        })
    }

    /// Whether its conversation can go on at `state`.
    pub(super) fn goes_on(
        self,
        decision: &Decision<'_>,
        tag: TagName,
        state: &StateName,
    ) -> Result<(), Blocked> {
        crossing(decision, self.session, self.holder, state).map_err(
            |SessionMismatch { state, answers, holds }| {
                Blocked::Fault(Fault::OtherBackend { tag, state, answers, holds })
            },
        )
    }

    /// The same, once limits are weighed. Where only a limit leads elsewhere, no other tag of the agent
    /// would help, so it is not told.
    pub(super) fn arrives(
        self,
        decision: &Decision<'_>,
        tag: TagName,
        to: &Destination,
    ) -> Result<(), Blocked> {
        self.goes_on(decision, tag, to.instead_of.as_ref().unwrap_or(&to.state))?;
        to.reached(decision, self.session, self.holder).map_err(Blocked::Failed)
    }

    /// Whether the backend of its conversation can branch it.
    pub(super) fn branches(self, decision: &Decision<'_>) -> Result<(), Blocked> {
        match self.holder {
            Some(backend) if decision.run.settings.no_branch.contains(backend) => {
                Err(Blocked::Fault(Fault::NoBranch { backend: backend.clone() }))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn directory(
        self,
        tag: TagName,
        cd: Option<&str>,
    ) -> Result<Option<String>, Blocked> {
        let Some(cd) = cd else { return Ok(None) };
        match self.directories.get(cd) {
            Some(found) => Ok(Some(found.clone())),
            None => Err(Blocked::Fault(Fault::NoDirectory { tag, cd: cut(cd) })),
        }
    }

    pub(super) fn moved(
        self,
        tag: TagName,
        stack: StackChange,
        session: &Session,
        to: &Destination,
    ) -> Event {
        Event::Moved {
            agent: self.agent.id.clone(),
            tag,
            stack,
            session: session.clone(),
            cwd: None,
            model: self.agent.model.clone(),
            model_of: to.model_of(self.agent.model.as_ref(), self.agent.model_of.as_ref()),
            forks: self.agent.forks,
            instead_of: to.instead_of.clone(),
        }
    }

    pub(super) fn enter(
        self,
        decision: &mut Decision<'_>,
        to: &Destination,
        input: Option<Value>,
        session: &Session,
    ) {
        decision.enter(Entry {
            agent: &self.agent.id,
            state: &to.state,
            visit: self.agent.visit.number.saturating_add(1),
            count: to.count,
            input,
            session,
        });
    }

    /// The transition as something to decide again later.
    pub(crate) fn keep(self, tags: &[Tag]) -> PendingTransition {
        PendingTransition { tags: tags.to_vec(), directories: self.directories.clone() }
    }
}

/// Faults are for people and agents: a name of kilobytes is cut.
pub(super) fn cut(text: &str) -> String {
    const LONGEST: usize = 200;
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(LONGEST)])
}
