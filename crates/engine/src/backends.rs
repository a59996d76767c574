//! The backends that a run may use, by name.
//!
//! The backends themselves are in `raymond_backends`; the caller chooses them.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_backends::contract::Backend;
use raymond_core::capability::BackendCatalog;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::BackendName;
use raymond_core::run::{Requirements, Settings};
use raymond_core::workflow::Reachability;

/// The agent clients that a run may use.
#[derive(Clone, Default)]
pub struct Backends {
    all: BTreeMap<BackendName, Arc<dyn Backend>>,
    /// Backends that answered earlier turns under a name that another backend has now. Only their
    /// transcripts are read.
    former: BTreeMap<BackendName, Arc<dyn Backend>>,
    check: Option<Arc<CheckStates>>,
}

/// Finds options of states and settings that the clients do not support.
type CheckStates = dyn Fn(&Settings, &Reachability<'_>) -> Vec<Diagnostic> + Send + Sync;

impl Backends {
    pub fn add(&mut self, backend: Arc<dyn Backend>) {
        self.all.insert(backend.name(), backend);
    }

    /// Lets a backend answer under another name, as replies from a file do.
    pub fn answer_for(&mut self, name: BackendName, backend: Arc<dyn Backend>) {
        self.all.insert(name, backend);
    }

    /// Adds a check for the edited states of an unpinned run.
    pub fn check_with(
        &mut self,
        check: impl Fn(&Settings, &Reachability<'_>) -> Vec<Diagnostic> + Send + Sync + 'static,
    ) {
        self.check = Some(Arc::new(check));
    }

    /// Returns all reasons why these backends cannot answer the states.
    pub(crate) fn check_states<'a>(
        &self,
        settings: &'a Settings,
        reachable: &Reachability<'a>,
    ) -> Vec<Diagnostic> {
        // Capabilities first, then the checks of the caller: the user sees all of them at once.
        let requirements = Requirements { settings, catalog: &self.catalog() };
        let words = self.check.iter().flat_map(|check| check(settings, reachable));
        requirements.of_start(reachable).into_iter().chain(words).collect()
    }

    /// Returns the capabilities of all backends.
    pub fn catalog(&self) -> BackendCatalog {
        self.all.iter().map(|(name, backend)| (name.clone(), backend.capabilities())).collect()
    }

    /// Reads transcripts of earlier turns with these backends, even if another backend has the same
    /// name.
    pub fn replace(&mut self, former: Self) {
        self.former = former.all;
    }

    /// Reads transcripts of earlier turns with these backends, unless a backend of the same name
    /// exists.
    pub fn replace_missing(&mut self, mut former: Self) {
        // A backend of the same name can read its own earlier transcripts.
        former.all.retain(|name, _| !self.all.contains_key(name));
        self.replace(former);
    }

    /// Returns the backend that answered earlier turns, if another one has its name now.
    pub fn former(&self, name: &BackendName) -> Option<Arc<dyn Backend>> {
        self.former.get(name).cloned()
    }

    pub fn get(&self, name: &BackendName) -> Option<Arc<dyn Backend>> {
        self.all.get(name).cloned()
    }
}

impl std::fmt::Debug for Backends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.all.keys()).finish()
    }
}
