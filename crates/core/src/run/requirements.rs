//! Checks what a run requires of its backends, before anything is spent.
//!
//! The caller supplies the backends and their capabilities. A requirement of one state is reported
//! in its file; a requirement of the whole run is reported once per backend. A missing protection
//! is an error, because it must not be dropped silently. A missing permission is only a warning.

use crate::capability::BackendCatalog;
use crate::diagnostic::Diagnostic;
use crate::ids::BackendName;
use crate::workflow::{FrontmatterPart, Reachability};

use super::settings::Settings;

mod policy_sessions;
mod prompts_by_backend;
mod unsupported;

pub use prompts_by_backend::{PromptsByBackend, listed};

/// The settings of a run, and the backends that it can use.
#[derive(Debug, Clone, Copy)]
pub struct Requirements<'a> {
    pub settings: &'a Settings,
    pub catalog: &'a BackendCatalog,
}

impl<'a> Requirements<'a> {
    /// Returns everything that prevents a start.
    pub fn of_start(&self, reachability: &Reachability<'a>) -> Vec<Diagnostic> {
        let mut found = self.of_resume(reachability);
        found.extend(self.mismatches(reachability));
        found
    }

    /// Returns everything that prevents a resume. A policy that leads to another backend is not
    /// reported again: it was there at the start, and a transition that takes it fails.
    pub fn of_resume(&self, reachability: &Reachability<'a>) -> Vec<Diagnostic> {
        let mut found = self.unknown(reachability);
        for state in reachability.prompts() {
            let backend = self.settings.real_backend_of(&state.front);
            let Some(can) = self.catalog.of(backend) else { continue };
            found.extend(unsupported::check_state(reachability, state, backend, can));
        }
        let prompts_by_backend =
            PromptsByBackend::of(reachability, |state| self.settings.real_backend_of(&state.front));
        for (backend, _) in prompts_by_backend.iter() {
            let Some(can) = self.catalog.of(backend) else { continue };
            found.extend(unsupported::check_run(self.settings, &prompts_by_backend, backend, can));
        }
        found
    }

    /// Reports unknown backends. The default backend of flags or configuration is reported once.
    fn unknown(&self, reachability: &Reachability<'a>) -> Vec<Diagnostic> {
        let mistake = |name: &BackendName| {
            let message = format!("there is no backend {:?}", name.as_str());
            Diagnostic::error("unknown-backend", message).hint(self.catalog.advice(name))
        };
        let is_unknown = |name: &BackendName| self.catalog.of(name).is_none();
        let named = reachability.prompts().filter_map(|state| {
            let name = state.front.backend.as_ref().filter(|name| is_unknown(name))?;
            Some(reachability.marked(mistake(name), state, FrontmatterPart::Key("backend")))
        });
        let mut found: Vec<Diagnostic> = named.collect();
        // Reported even if no state uses it, because the user named it on purpose.
        found.extend(Some(&self.settings.backend).filter(|name| is_unknown(name)).map(mistake));
        found
    }
}

#[cfg(test)]
mod tests;
