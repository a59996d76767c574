//! The agent that takes a transition: its checks, and its events.
//!
//! The files of [`super::tags`] share it. It contains the conversation after the last turn, because
//! the run does not contain that turn's outcome until the decision is applied.

use std::collections::BTreeMap;

use crate::ids::{BackendName, StateName};
use crate::protocol::{Fault, Need, ResultStatus, Tag, TagName};
use crate::run::decision::{Decision, VisitEntry};
use crate::run::event::{Event, StackChange};
use crate::text::excerpt_bytes;
use crate::value::Value;
use crate::workflow::policy::PolicyRefusal;

use super::limits::Destination;
use super::session_backend::{SessionMismatch, check_session_backend};
use crate::agent::Session;
use crate::agent::{Agent, PendingTransition};
use crate::machine::blocked::Blocked;

/// The agent that takes a transition, with what its last turn changed.
#[derive(Clone, Copy)]
pub(crate) struct TransitionContext<'a> {
    pub(crate) agent: &'a Agent,
    /// The conversation after the turn that just ended.
    pub(crate) session: &'a Session,
    /// The backend that has the conversation.
    pub(crate) holder: Option<&'a BackendName>,
    /// The existing directories that the tags name.
    pub(crate) directories: &'a BTreeMap<String, String>,
    /// Whether the text had no tag, and the only allowed transition is taken.
    pub(crate) implicit: bool,
}

impl<'a> TransitionContext<'a> {
    /// Creates the context of an agent whose turn was settled earlier.
    pub(crate) fn of(agent: &'a Agent, directories: &'a BTreeMap<String, String>) -> Self {
        let (session, holder) = (&agent.session, agent.holder.as_ref());
        Self { agent, session, holder, directories, implicit: false }
    }

    /// Checks the policy of the state that the agent leaves.
    pub(super) fn check(
        self,
        decision: &Decision<'_>,
        tag: TagName,
        target: Option<&StateName>,
        then: Option<&StateName>,
    ) -> Result<(), Blocked> {
        // An edited workflow may lack the state that the agent leaves; then no policy applies.
        let Some(state) = decision.visited(self.agent) else {
            return Ok(());
        };
        let named = |state: Option<&StateName>| state.map(ToString::to_string);
        state.front.policy.check(tag, target, then, None).map_err(|refused| {
            let (target, follower) = match refused {
                PolicyRefusal::Tag => (None, None),
                PolicyRefusal::Target => (named(target), None),
                PolicyRefusal::Follower => (named(target), named(then)),
            };
            Blocked::Fault(Fault::Forbidden { tag, target, follower })
        })
    }

    /// Checks the policy for a `goto` that waits for workers.
    pub(super) fn check_gather(
        self,
        decision: &Decision<'_>,
        target: &StateName,
        need: Need,
    ) -> Result<(), Blocked> {
        let Some(state) = decision.visited(self.agent) else {
            return Ok(());
        };
        let tag = TagName::Goto;
        state.front.policy.check(tag, Some(target), None, Some(need)).map_err(|refused| {
            let target = (refused != PolicyRefusal::Tag).then(|| target.to_string());
            Blocked::Fault(Fault::Forbidden { tag, target, follower: None })
        })
    }

    /// Checks that the conversation can continue at `state`.
    pub(super) fn check_continues(
        self,
        decision: &Decision<'_>,
        tag: TagName,
        state: &StateName,
    ) -> Result<(), Blocked> {
        check_session_backend(decision, self.session, self.holder, state).map_err(
            |SessionMismatch { answers, holds }| {
                let state = state.clone();
                Blocked::Fault(Fault::OtherBackend { tag, state, answers, holds })
            },
        )
    }

    /// Checks that the conversation can continue at a destination.
    pub(super) fn check_destination(
        self,
        decision: &Decision<'_>,
        tag: TagName,
        to: &Destination,
    ) -> Result<(), Blocked> {
        self.check_continues(decision, tag, to.instead_of.as_ref().unwrap_or(&to.state))?;
        // Only a limit leads to another backend here, so the agent fails and is not reminded: no
        // other tag would help.
        to.check_session(decision, self.session, self.holder).map_err(Blocked::Failed)
    }

    /// Checks that the backend can branch the conversation.
    pub(super) fn check_branch(self, decision: &Decision<'_>) -> Result<(), Blocked> {
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
        // The executor looked for the directories, because this crate reads no files.
        match self.directories.get(cd) {
            Some(found) => Ok(Some(found.clone())),
            None => Err(Blocked::Fault(Fault::NoDirectory { tag, cd: shortened(cd) })),
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
            // `None` keeps the directory: only `reset` and a return change it.
            cwd: None,
            model: self.agent.model.clone(),
            model_of: to.model_of(self.agent.model.as_ref(), self.agent.model_of.as_ref()),
            forks: self.agent.forks,
            instead_of: to.instead_of.clone(),
            implicit: self.implicit,
        }
    }

    pub(super) fn enter(
        self,
        decision: &mut Decision<'_>,
        to: &Destination,
        input: Option<Value>,
        session: &Session,
    ) {
        decision.enter(VisitEntry {
            agent: &self.agent.id,
            state: &to.state,
            visit: self.agent.visit.number.saturating_add(1),
            count: to.count,
            input,
            result_status: ResultStatus::Ok,
            session,
        });
    }

    /// Returns the transition in a form that can be decided again later.
    pub(crate) fn keep(self, tags: &[Tag]) -> PendingTransition {
        PendingTransition { tags: tags.to_vec(), directories: self.directories.clone() }
    }
}

/// Shortens a name for a fault, which users and agents read.
pub(super) fn shortened(text: &str) -> String {
    // Bytes; names in workflows are far shorter, so only nonsense is shortened.
    const LONGEST: usize = 200;
    excerpt_bytes(text, LONGEST).into_owned()
}
