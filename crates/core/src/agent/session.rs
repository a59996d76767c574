//! Conversations: the one an agent has, and how a turn gets hold of it.

use serde::{Deserialize, Serialize};

use crate::ids::SessionId;

/// The conversation that an agent's next prompt continues. Scripts carry it unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Session {
    /// None yet.
    #[default]
    Fresh,
    /// This one.
    At(SessionId),
    /// A branch of this one, not made yet.
    BranchOf(SessionId),
}

/// How a turn gets its conversation. Every id is chosen before the turn starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionPlan {
    /// Open a new one under this id.
    Fresh(SessionId),
    /// Go on in this one.
    Resume(SessionId),
    /// Branch `from`; the branch gets the id `to`.
    Branch {
        /// Stays as it is.
        from: SessionId,
        /// Is written.
        to: SessionId,
    },
    /// An earlier attempt may have opened it: resume, and when the client knows no such session, the
    /// original plan.
    Continue {
        /// The session of the earlier attempt.
        session: SessionId,
        /// The plan of the first attempt.
        or_else: Box<Self>,
    },
    /// A script: no conversation is touched.
    Carry,
}

impl SessionPlan {
    /// The conversation that the turn writes into.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Fresh(id) | Self::Resume(id) | Self::Branch { to: id, .. } => Some(id),
            Self::Continue { session, .. } => Some(session),
            Self::Carry => None,
        }
    }

    /// The plan of an attempt after this one.
    #[must_use]
    pub fn continued(&self) -> Self {
        self.session().map_or(Self::Carry, |id| self.continued_in(id))
    }

    /// The plan of an attempt after one that opened this session.
    #[must_use]
    pub fn continued_in(&self, session: &SessionId) -> Self {
        match self {
            Self::Carry | Self::Resume(_) | Self::Continue { .. } => self.clone(),
            Self::Fresh(_) | Self::Branch { .. } => {
                Self::Continue { session: session.clone(), or_else: Box::new(self.clone()) }
            }
        }
    }
}

impl Session {
    /// The session that a callee of this one branches from.
    #[must_use]
    pub fn branched(&self) -> Self {
        match self {
            Self::Fresh => Self::Fresh,
            Self::At(id) | Self::BranchOf(id) => Self::BranchOf(id.clone()),
        }
    }

    /// The plan of a first attempt, where `new` is the id for whatever has to be opened.
    pub fn plan(&self, new: SessionId) -> SessionPlan {
        match self {
            Self::Fresh => SessionPlan::Fresh(new),
            Self::At(id) => SessionPlan::Resume(id.clone()),
            Self::BranchOf(from) => SessionPlan::Branch { from: from.clone(), to: new },
        }
    }
}
