//! A conversation belongs to the backend whose turn opened it: no other one can go on in it, or
//! branch it.
//!
//! A prompt that is entered with a conversation must be answered by its holder. Scripts carry it, and
//! a fresh one may be opened anywhere.

use crate::desk::Lane;
use crate::ids::{BackendName, StateName};
use crate::run::Settings;
use crate::run::draft::Draft;

use super::session::Session;

/// A state that would go on in a conversation of another backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Crossing {
    /// The state.
    pub(crate) state: StateName,
    /// The backend that answers it.
    pub(crate) answers: BackendName,
    /// The backend that holds the conversation.
    pub(crate) holds: BackendName,
}

/// Whether `state` can be entered with a conversation that `holder` holds.
pub(crate) fn crossing(
    draft: &Draft<'_>,
    session: &Session,
    holder: Option<&BackendName>,
    state: &StateName,
) -> Result<(), Crossing> {
    between(&draft.run.settings, (session, holder), (state, draft.lane(state)))
}

/// The same, where it is known who answers the state.
pub(crate) fn between(
    settings: &Settings,
    (session, holder): (&Session, Option<&BackendName>),
    (state, lane): (&StateName, Lane),
) -> Result<(), Crossing> {
    match (session, holder, lane) {
        (Session::At(_) | Session::BranchOf(_), Some(holds), Lane::Prompt(answers))
            if settings.meant(holds) != settings.meant(&answers) =>
        {
            let (answers, holds) =
                (settings.meant(&answers).clone(), settings.meant(holds).clone());
            Err(Crossing { state: state.clone(), answers, holds })
        }
        (Session::Fresh | Session::At(_) | Session::BranchOf(_), _, _) => Ok(()),
    }
}
