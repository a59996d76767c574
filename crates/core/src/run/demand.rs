//! What the states of a run ask of their backends, weighed before anything is spent.
//!
//! Which backends there are, and what each can do, is told by whoever starts the run. A need of a
//! state is a mistake in its file; one of the whole run is told once for each backend. Nothing that
//! protects is dropped silently: only what merely allows more is a warning.

use crate::capability::Offers;
use crate::diagnostic::Diagnostic;
use crate::ids::BackendName;
use crate::workflow::{Mark, Survey};

use super::settings::Settings;

mod answered;
mod crossing;
mod lacking;

pub use answered::{Answered, listed};

/// What governs a run, and the backends that there are for it.
#[derive(Debug, Clone, Copy)]
pub struct Demand<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The backends.
    pub offers: &'a Offers,
}

impl<'a> Demand<'a> {
    /// All that stands in the way of a start.
    pub fn of_start(&self, survey: &Survey<'a>) -> Vec<Diagnostic> {
        let mut found = self.of_resume(survey);
        found.extend(self.crossings(survey));
        found
    }

    /// All that stands in the way of going on. A policy that leads to another backend has been there
    /// all the time: it is met where a transition takes it.
    pub fn of_resume(&self, survey: &Survey<'a>) -> Vec<Diagnostic> {
        let mut found = self.unknown(survey);
        for state in survey.prompts() {
            let backend = self.settings.meant_for(&state.front);
            let Some(can) = self.offers.of(backend) else { continue };
            found.extend(lacking::of_state(survey, state, (backend, can)));
        }
        let answered = Answered::of(survey, |state| self.settings.meant_for(&state.front));
        for (backend, _) in answered.iter() {
            let Some(can) = self.offers.of(backend) else { continue };
            found.extend(lacking::of_run(self.settings, &answered, (backend, can)));
        }
        found
    }

    /// Names that no backend has. The one of flags or configuration is named once.
    fn unknown(&self, survey: &Survey<'a>) -> Vec<Diagnostic> {
        let mistake = |name: &BackendName| {
            let message = format!("there is no backend {:?}", name.as_str());
            Diagnostic::error("unknown-backend", message).hint(self.offers.advice(name))
        };
        let is_unknown = |name: &BackendName| self.offers.of(name).is_none();
        let named = survey.prompts().filter_map(|state| {
            let name = state.front.backend.as_ref().filter(|name| is_unknown(name))?;
            Some(survey.marked(mistake(name), state, Mark::Key("backend")))
        });
        let mut found: Vec<Diagnostic> = named.collect();
        // Also where no state needs it: whoever names one means it.
        found.extend(Some(&self.settings.backend).filter(|name| is_unknown(name)).map(mistake));
        found
    }
}

#[cfg(test)]
mod tests;
