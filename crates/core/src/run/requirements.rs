//! What the states of a run ask of their backends, weighed before anything is spent.
//!
//! Which backends there are, and what each can do, is told by whoever starts the run. A need of a
//! state is a mistake in its file; one of the whole run is told once for each backend. Nothing that
//! protects is dropped silently: only what merely allows more is a warning.

use crate::capability::BackendCatalog;
use crate::diagnostic::Diagnostic;
use crate::ids::BackendName;
use crate::workflow::{Mark, Reachability};

use super::settings::Settings;

mod policy_sessions;
mod prompts_by_backend;
mod unsupported;

pub use prompts_by_backend::{PromptsByBackend, listed};

/// What governs a run, and the backends that there are for it.
#[derive(Debug, Clone, Copy)]
pub struct Requirements<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The backends.
    pub catalog: &'a BackendCatalog,
}

impl<'a> Requirements<'a> {
    /// All that stands in the way of a start.
    pub fn of_start(&self, reachability: &Reachability<'a>) -> Vec<Diagnostic> {
        let mut found = self.of_resume(reachability);
        found.extend(self.crossings(reachability));
        found
    }

    /// All that stands in the way of going on. A policy that leads to another backend has been there
    /// all the time: it is met where a transition takes it.
    pub fn of_resume(&self, reachability: &Reachability<'a>) -> Vec<Diagnostic> {
        let mut found = self.unknown(reachability);
        for state in reachability.prompts() {
            let backend = self.settings.real_backend_of(&state.front);
            let Some(can) = self.catalog.of(backend) else { continue };
            found.extend(unsupported::of_state(reachability, state, (backend, can)));
        }
        let prompts_by_backend =
            PromptsByBackend::of(reachability, |state| self.settings.real_backend_of(&state.front));
        for (backend, _) in prompts_by_backend.iter() {
            let Some(can) = self.catalog.of(backend) else { continue };
            found.extend(unsupported::of_run(self.settings, &prompts_by_backend, (backend, can)));
        }
        found
    }

    /// Names that no backend has. The one of flags or configuration is named once.
    fn unknown(&self, reachability: &Reachability<'a>) -> Vec<Diagnostic> {
        let mistake = |name: &BackendName| {
            let message = format!("there is no backend {:?}", name.as_str());
            Diagnostic::error("unknown-backend", message).hint(self.catalog.advice(name))
        };
        let is_unknown = |name: &BackendName| self.catalog.of(name).is_none();
        let named = reachability.prompts().filter_map(|state| {
            let name = state.front.backend.as_ref().filter(|name| is_unknown(name))?;
            Some(reachability.marked(mistake(name), state, Mark::Key("backend")))
        });
        let mut found: Vec<Diagnostic> = named.collect();
        // Also where no state needs it: whoever names one means it.
        found.extend(Some(&self.settings.backend).filter(|name| is_unknown(name)).map(mistake));
        found
    }
}

#[cfg(test)]
mod tests;
