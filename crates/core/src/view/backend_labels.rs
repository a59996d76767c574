//! Whether texts name the backend of a turn.
//!
//! A run with one backend does not repeat its name at every turn. A run that uses several backends,
//! or may use them, names the backend wherever it names a turn or a conversation.

use std::collections::BTreeSet;

use crate::agent::Agent;
use crate::extension::Extension;
use crate::ids::BackendName;
use crate::run::{Run, Settings};
use crate::scheduler::Lane;
use crate::workflow::{Definition, Reachability};

/// Whether texts name backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendLabels {
    /// There is only one backend.
    #[default]
    Hidden,
    /// There are several backends.
    Shown,
}

impl BackendLabels {
    /// Returns the choice for these backends, which may repeat.
    pub(super) fn among<'a>(backends: impl IntoIterator<Item = &'a BackendName>) -> Self {
        let mut backends = backends.into_iter();
        let Some(first) = backends.next() else { return Self::Hidden };
        if backends.any(|other| other != first) { Self::Shown } else { Self::Hidden }
    }

    /// Returns the backend if texts name it.
    pub fn label(self, backend: Option<&BackendName>) -> Option<&BackendName> {
        match self {
            Self::Hidden => None,
            Self::Shown => backend,
        }
    }

    /// Returns ` (codex)` if texts name the backend.
    pub(super) fn suffix(self, backend: Option<&BackendName>) -> String {
        self.label(backend).map(|backend| format!(" ({backend})")).unwrap_or_default()
    }
}

/// Returns the backends that the reachable states of a workflow may use.
pub fn asked(settings: &Settings, definition: &Definition) -> BTreeSet<BackendName> {
    let reachability = Reachability::of(definition);
    // States that no transition reaches would make texts name a backend that is never used.
    let prompts = reachability.prompts().filter(|state| reachability.is_reached(&state.name));
    prompts.map(|state| settings.backend_of(&state.front).clone()).collect()
}

/// Returns the backend of an agent's turn or, between two turns, of its session. A script has none.
pub fn answering<'r>(run: &'r Run, agent: &'r Agent) -> Option<&'r BackendName> {
    match run.scheduler.turns.get(&agent.id).map(|turn| &turn.lane) {
        Some(Lane::Prompt(backend)) => Some(backend),
        Some(Lane::Script) => None,
        None => {
            let state = agent.visit.location.state();
            let is_prompt =
                state.is_some_and(|state| Extension::of(state.as_str()) == Some(Extension::Md));
            // A script carries the conversation of its agent, but no client answers it.
            agent.holder.as_ref().filter(|_| is_prompt)
        }
    }
}

/// Returns whether replies from a file answer an agent.
pub(super) fn is_rehearsed(run: &Run, agent: &Agent) -> bool {
    answering(run, agent).is_some_and(|backend| run.settings.rehearses(backend))
}

#[cfg(test)]
mod tests;
