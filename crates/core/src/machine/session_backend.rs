//! Checks that a conversation stays with its backend.
//!
//! A conversation belongs to the backend whose turn opened it, because no other backend can
//! continue or branch it. A prompt that is entered with a conversation must be answered by that
//! backend. Scripts leave the conversation alone, and any backend can open a fresh one.

use crate::ids::{BackendName, StateName};
use crate::run::Settings;
use crate::run::decision::Decision;
use crate::scheduler::Lane;

use crate::agent::Session;

/// A conversation that another backend would have to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionMismatch {
    /// The backend that would answer.
    pub(crate) answers: BackendName,
    /// The backend that has the conversation.
    pub(crate) holds: BackendName,
}

/// Checks that `state` can be entered with a conversation of `holder`.
pub(crate) fn check_session_backend(
    decision: &Decision<'_>,
    session: &Session,
    holder: Option<&BackendName>,
    state: &StateName,
) -> Result<(), SessionMismatch> {
    check_lane(&decision.run.settings, session, holder, decision.state_lane(state))
}

/// Checks a state or a step whose lane is known already.
pub(crate) fn check_lane(
    settings: &Settings,
    session: &Session,
    holder: Option<&BackendName>,
    lane: Lane,
) -> Result<(), SessionMismatch> {
    match (session, holder, lane) {
        (Session::At(_) | Session::BranchOf(_), Some(holds), Lane::Prompt(answers))
            // Scripted replies replace a real backend, with which the run may continue later.
            if settings.real_backend(holds) != settings.real_backend(&answers) =>
        {
            let (answers, holds) =
                (settings.real_backend(&answers).clone(), settings.real_backend(holds).clone());
            Err(SessionMismatch { answers, holds })
        }
        (Session::Fresh | Session::At(_) | Session::BranchOf(_), _, _) => Ok(()),
    }
}
