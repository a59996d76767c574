//! The steps that carry out a session plan: one client per step, until a client finds its session.

use raymond_core::agent::SessionPlan;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;

/// The way in which one client gets its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionStep {
    /// Opens a session under this id.
    Open(SessionId),
    /// Continues this session.
    Resume(SessionId),
    /// Branches a session.
    Branch {
        /// The session that stays unchanged.
        from: SessionId,
        /// The session that the client writes.
        to: SessionId,
    },
}

impl SessionStep {
    /// Returns the steps of a plan. Each step is the fallback for a step that did not find its
    /// session.
    pub(crate) fn of(plan: &SessionPlan) -> Vec<Self> {
        match plan {
            SessionPlan::Fresh(id) => vec![Self::Open(id.clone())],
            SessionPlan::Resume(id) => vec![Self::Resume(id.clone())],
            SessionPlan::Branch { from, to } => {
                vec![Self::Branch { from: from.clone(), to: to.clone() }]
            }
            SessionPlan::Continue { session, or_else } => {
                // The session may exist already: a client that was interrupted opened it.
                let mut steps = vec![Self::Resume(session.clone())];
                steps.extend(Self::of(or_else));
                steps
            }
            // `Carry` belongs to scripts, which have no conversation of their own.
            SessionPlan::Carry => Vec::new(),
        }
    }

    /// Returns the session that must already exist.
    pub(crate) fn required_session(&self) -> Option<&SessionId> {
        match self {
            Self::Open(_) => None,
            Self::Resume(id) | Self::Branch { from: id, .. } => Some(id),
        }
    }

    /// Returns the step with another session to write. A resumed session keeps its id.
    pub(crate) fn with_session(self, id: SessionId) -> Self {
        match self {
            Self::Open(_) => Self::Open(id),
            Self::Branch { from, .. } => Self::Branch { from, to: id },
            resume @ Self::Resume(_) => resume,
        }
    }

    /// Returns the session that the client writes.
    pub(crate) fn written_session(&self) -> &SessionId {
        match self {
            Self::Open(id) | Self::Resume(id) | Self::Branch { to: id, .. } => id,
        }
    }

    /// Returns the failure of a client that wrote to another session than planned; `word` is the
    /// client's name for a session.
    pub(crate) fn wrong_session_failure(&self, word: &str, named: &SessionId) -> TurnFailure {
        let why = match self {
            Self::Branch { from, .. } if from == named => {
                format!("the client should have branched {word} {from} but continued it")
            }
            Self::Open(id) | Self::Resume(id) | Self::Branch { to: id, .. } => {
                format!("the client should have written {word} {id} but reports {word} {named}")
            }
        };
        TurnFailure::Task { why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_falls_back_to_its_plan() {
        let id = SessionId::new;
        let (s, from) = (id("s"), id("from"));
        let (open, resume) = (SessionStep::Open(s.clone()), SessionStep::Resume(s.clone()));
        let branch = SessionStep::Branch { from: from.clone(), to: s.clone() };
        let check = |plan: &SessionPlan, expected: &[SessionStep]| {
            assert_eq!(SessionStep::of(plan), expected);
        };
        let fresh = SessionPlan::Fresh(s.clone());
        let branching = SessionPlan::Branch { from, to: s.clone() };
        check(&fresh, std::slice::from_ref(&open));
        check(&SessionPlan::Resume(s), std::slice::from_ref(&resume));
        check(&branching, std::slice::from_ref(&branch));
        check(&fresh.continued(), &[resume.clone(), open]);
        check(&branching.continued(), &[resume, branch]);
        check(&SessionPlan::Carry, &[]);
    }
}
