//! Everything that all turns of a run share: backends, blobs, directories and settings.
//!
//! The context never changes while the run is active, except for the list of warnings. The data of a
//! single turn is in `turn::TurnSpec`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use raymond_backends::contract::Backend;
use raymond_backends::process::Grace;
use raymond_core::capability::BackendCatalog;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::{BackendName, Nonce, RunId, StateName};
use raymond_core::protocol::Source;
use raymond_core::run::settings::Pinning;
use raymond_core::run::warning::Warning;
use raymond_core::run::{Requirements, Settings};
use raymond_core::value::{BlobRef, Value};
use raymond_core::workflow::Reachability;
use raymond_store::{Blobs, blobs};

use crate::observe;
use crate::schemas::Schemas;
use crate::scope::Origin;

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
    pub(super) fn check_states<'a>(
        &self,
        settings: &'a Settings,
        survey: &Reachability<'a>,
    ) -> Vec<Diagnostic> {
        // Capabilities first, then the checks of the caller: the user sees all of them at once.
        let demand = Requirements { settings, catalog: &self.catalog() };
        let words = self.check.iter().flat_map(|check| check(settings, survey));
        demand.of_start(survey).into_iter().chain(words).collect()
    }

    /// Returns the capabilities of all backends.
    pub fn catalog(&self) -> BackendCatalog {
        self.all.iter().map(|(name, backend)| (name.clone(), backend.capabilities())).collect()
    }

    /// Reads transcripts of earlier turns with these backends, even if another backend has the same name.
    pub fn replace(&mut self, former: Self) {
        self.former = former.all;
    }

    /// Reads transcripts of earlier turns with these backends, unless a backend of the same name exists.
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

/// The data that every turn of a run shares.
#[derive(Debug)]
pub(crate) struct TurnContext {
    pub(crate) run: RunId,
    pub(crate) nonce: Nonce,
    pub(crate) scope: String,
    pub(crate) vars: BTreeMap<String, String>,
    pub(crate) schemas: Arc<Schemas>,
    /// Decides which tags a final message may contain.
    pub(crate) messages: Source,
    pub(crate) origin: Origin,
    pub(crate) pinning: Pinning,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) backends: Backends,
    pub(crate) grace: Grace,
    /// The directory of transcripts.
    pub(crate) transcripts: PathBuf,
    /// The directory of the clients' configurations, if each agent has its own.
    pub(crate) homes: PathBuf,
    /// The directory for pinned copies of scripts and for their results.
    pub(crate) private: PathBuf,
    /// Unknown template variables that a warning has named.
    pub(crate) warned: Mutex<BTreeSet<(StateName, String)>>,
}

impl TurnContext {
    pub(crate) fn load(&self, blob: &BlobRef) -> Result<String, blobs::Error> {
        observe::load(&self.blobs, &Value::Blob(blob.clone()))
    }

    /// Returns warnings for unknown template variables, one per state and name: a loop would repeat
    /// them at each visit.
    pub(crate) fn warn_unknown(&self, state: &StateName, names: Vec<String>) -> Vec<Warning> {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let new = names.into_iter().filter(|name| warned.insert((state.clone(), name.clone())));
        new.map(|name| Warning::UnknownVariable { name }).collect()
    }
}
