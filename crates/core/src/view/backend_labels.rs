//! Which backend answers whom, and whether that has to be said.
//!
//! A run whose states and turns ask one backend does not repeat its name at every turn. One that asks
//! several, or may, names them wherever a turn or a conversation is named: who did what is what people look
//! for there.

use std::collections::BTreeSet;

use crate::agent::Agent;
use crate::extension::Extension;
use crate::ids::BackendName;
use crate::run::{Run, Settings};
use crate::scheduler::Lane;
use crate::workflow::{Definition, Reachability};

/// Whether backends are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendLabels {
    /// There is only one: it goes without saying.
    #[default]
    Hidden,
    /// There are several.
    Shown,
}

impl BackendLabels {
    /// For these backends, some of which may be the same.
    pub(super) fn among<'a>(backends: impl IntoIterator<Item = &'a BackendName>) -> Self {
        let mut backends = backends.into_iter();
        let Some(first) = backends.next() else { return Self::Hidden };
        if backends.any(|other| other != first) { Self::Shown } else { Self::Hidden }
    }

    /// The backend, where it is named.
    pub fn label(self, backend: Option<&BackendName>) -> Option<&BackendName> {
        match self {
            Self::Hidden => None,
            Self::Shown => backend,
        }
    }

    /// ` (codex)`, where it is named.
    pub(super) fn suffix(self, backend: Option<&BackendName>) -> String {
        self.label(backend).map(|backend| format!(" ({backend})")).unwrap_or_default()
    }
}

/// The backends that a run of these states may ask.
pub fn asked(settings: &Settings, definition: &Definition) -> BTreeSet<BackendName> {
    let reachability = Reachability::of(definition);
    let prompts = reachability.prompts().filter(|state| reachability.is_reached(&state.name));
    prompts.map(|state| settings.backend_of(&state.front).clone()).collect()
}

/// The backend of an agent's turn or, between two turns, of its conversation. A script has none.
pub fn answering<'r>(run: &'r Run, agent: &'r Agent) -> Option<&'r BackendName> {
    match run.scheduler.turns.get(&agent.id).map(|turn| &turn.lane) {
        Some(Lane::Prompt(backend)) => Some(backend),
        Some(Lane::Script) => None,
        None => {
            let is_prompt = Extension::of(agent.visit.state.as_str()) == Some(Extension::Md);
            agent.holder.as_ref().filter(|_| is_prompt)
        }
    }
}

#[cfg(test)]
mod tests;
