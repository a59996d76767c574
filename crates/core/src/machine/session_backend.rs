//! A conversation belongs to the backend whose turn opened it: no other one can go on in it, or
//! branch it.
//!
//! A prompt that is entered with a conversation must be answered by its holder. Scripts carry it, and
//! a fresh one may be opened anywhere.

use crate::ids::{BackendName, StateName};
use crate::run::Settings;
use crate::run::decision::Decision;
use crate::scheduler::Lane;

use crate::agent::Session;

/// A state that would go on in a conversation of another backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionMismatch {
    /// The state.
    pub(crate) state: StateName,
    /// The backend that answers it.
    pub(crate) answers: BackendName,
    /// The backend that holds the conversation.
    pub(crate) holds: BackendName,
}

/// Whether `state` can be entered with a conversation that `holder` holds.
pub(crate) fn crossing(
    decision: &Decision<'_>,
    session: &Session,
    holder: Option<&BackendName>,
    state: &StateName,
) -> Result<(), SessionMismatch> {
    between(&decision.run.settings, (session, holder), (state, decision.lane(state)))
}

/// The same, where it is known who answers the state.
pub(crate) fn between(
    settings: &Settings,
    (session, holder): (&Session, Option<&BackendName>),
    (state, lane): (&StateName, Lane),
) -> Result<(), SessionMismatch> {
    match (session, holder, lane) {
        (Session::At(_) | Session::BranchOf(_), Some(holds), Lane::Prompt(answers))
            if settings.real_backend(holds) != settings.real_backend(&answers) =>
        {
            let (answers, holds) =
                (settings.real_backend(&answers).clone(), settings.real_backend(holds).clone());
            Err(SessionMismatch { state: state.clone(), answers, holds })
        }
        (Session::Fresh | Session::At(_) | Session::BranchOf(_), _, _) => Ok(()),
    }
}
