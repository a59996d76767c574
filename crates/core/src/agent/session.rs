//! Sessions: the conversation of an agent, and how a turn gets access to it.
//!
//! Ids are chosen before a turn starts, so that a crash cannot lose a session. How a client opens,
//! resumes or branches a session is the concern of the backends.

use serde::{Deserialize, Serialize};

use crate::ids::SessionId;

/// The conversation that an agent's next prompt continues. Scripts leave it unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Session {
    #[default]
    Fresh,
    At(SessionId),
    /// A branch of this session, which does not exist yet.
    BranchOf(SessionId),
}

/// How a turn gets its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionPlan {
    /// Open a new session under this id.
    Fresh(SessionId),
    /// Continue this session.
    Resume(SessionId),
    /// Branch `from`. The branch gets the id `to`.
    Branch {
        /// The session of the caller, which must not change.
        from: SessionId,
        /// The new session.
        to: SessionId,
    },
    /// Resume the session that an earlier attempt may have opened. If the client does not know it,
    /// follow the original plan.
    Continue {
        /// The session of the earlier attempt.
        session: SessionId,
        /// The plan of the first attempt.
        or_else: Box<Self>,
    },
    /// Leave the conversation alone, for scripts.
    Carry,
}

impl SessionPlan {
    /// Returns the session that the turn writes into.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Fresh(id) | Self::Resume(id) | Self::Branch { to: id, .. } => Some(id),
            Self::Continue { session, .. } => Some(session),
            Self::Carry => None,
        }
    }

    /// Returns the plan of the next attempt.
    #[must_use]
    pub fn continued(&self) -> Self {
        self.session().map_or(Self::Carry, |id| self.continued_in(id))
    }

    /// Returns the plan of the next attempt, after this attempt opened `session`.
    #[must_use]
    pub fn continued_in(&self, session: &SessionId) -> Self {
        match self {
            // A resumed session exists for certain, and `Continue` keeps its first fallback.
            Self::Carry | Self::Resume(_) | Self::Continue { .. } => self.clone(),
            Self::Fresh(_) | Self::Branch { .. } => {
                Self::Continue { session: session.clone(), or_else: Box::new(self.clone()) }
            }
        }
    }
}

impl Session {
    /// Returns the session of a callee: a branch of this one.
    #[must_use]
    pub fn branched(&self) -> Self {
        match self {
            Self::Fresh => Self::Fresh,
            Self::At(id) | Self::BranchOf(id) => Self::BranchOf(id.clone()),
        }
    }

    /// Returns the plan of a first attempt. `new` is the id of a session that has to be opened.
    pub fn plan(&self, new: SessionId) -> SessionPlan {
        match self {
            // The id is chosen before the turn, so that a crash cannot lose the conversation.
            Self::Fresh => SessionPlan::Fresh(new),
            Self::At(id) => SessionPlan::Resume(id.clone()),
            Self::BranchOf(from) => SessionPlan::Branch { from: from.clone(), to: new },
        }
    }
}
