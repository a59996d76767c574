//! What executors of turns need: where blobs and scripts lie, which backends there are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use raymond_backends::contract::Backend;
use raymond_backends::process::Grace;
use raymond_core::capability::BackendCatalog;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::{BackendName, Nonce, RunId, StateName};
use raymond_core::protocol::Source;
use raymond_core::run::event::Warning;
use raymond_core::run::settings::Pinning;
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
    /// Those that earlier turns were asked of, where others answer from now on.
    former: BTreeMap<BackendName, Arc<dyn Backend>>,
    check: Option<Arc<CheckStates>>,
}

/// What clients would not understand of what states and settings ask of them.
type CheckStates = dyn Fn(&Settings, &Reachability<'_>) -> Vec<Diagnostic> + Send + Sync;

impl Backends {
    /// Adds one.
    pub fn add(&mut self, backend: Arc<dyn Backend>) {
        self.all.insert(backend.name(), backend);
    }

    /// Lets one answer for the backend of this name.
    pub fn answer_for(&mut self, name: BackendName, backend: Arc<dyn Backend>) {
        self.all.insert(name, backend);
    }

    /// Has edits of an unpinned run check_states like this, beside what the backends can do.
    pub fn check_with(
        &mut self,
        check: impl Fn(&Settings, &Reachability<'_>) -> Vec<Diagnostic> + Send + Sync + 'static,
    ) {
        self.check = Some(Arc::new(check));
    }

    /// All that stands in the way of states that these backends are to answer.
    pub(super) fn check_states<'a>(
        &self,
        settings: &'a Settings,
        survey: &Reachability<'a>,
    ) -> Vec<Diagnostic> {
        let demand = Requirements { settings, catalog: &self.catalog() };
        let words = self.check.iter().flat_map(|check| check(settings, survey));
        demand.of_start(survey).into_iter().chain(words).collect()
    }

    /// What they can do.
    pub fn catalog(&self) -> BackendCatalog {
        self.all.iter().map(|(name, backend)| (name.clone(), backend.capabilities())).collect()
    }

    /// Reads what earlier turns left with these backends, even if another one answers for the same name.
    pub fn replace(&mut self, former: Self) {
        self.former = former.all;
    }

    /// Reads what earlier turns left with these backends, unless one of the same name still answers.
    pub fn replace_missing(&mut self, mut former: Self) {
        former.all.retain(|name, _| !self.all.contains_key(name));
        self.replace(former);
    }

    /// The one that earlier turns were asked of, if another answers from now on.
    pub fn former(&self, name: &BackendName) -> Option<Arc<dyn Backend>> {
        self.former.get(name).cloned()
    }

    /// The one of this name.
    pub fn get(&self, name: &BackendName) -> Option<Arc<dyn Backend>> {
        self.all.get(name).cloned()
    }
}

impl std::fmt::Debug for Backends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.all.keys()).finish()
    }
}

/// What every turn of a run shares.
#[derive(Debug)]
pub(crate) struct TurnContext {
    pub(crate) run: RunId,
    pub(crate) nonce: Nonce,
    pub(crate) scope: String,
    pub(crate) vars: BTreeMap<String, String>,
    pub(crate) schemas: Arc<Schemas>,
    /// What final messages are read as.
    pub(crate) messages: Source,
    pub(crate) origin: Origin,
    pub(crate) pinning: Pinning,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) backends: Backends,
    pub(crate) grace: Grace,
    /// Where clients write what they say.
    pub(crate) transcripts: PathBuf,
    /// Where clients keep the configuration of each agent, when agents do not share it.
    pub(crate) homes: PathBuf,
    /// Where pinned scripts and results are put for scripts.
    pub(crate) private: PathBuf,
    /// Unknown template variables that were warned of.
    pub(crate) warned: Mutex<BTreeSet<(StateName, String)>>,
}

impl TurnContext {
    pub(crate) fn load(&self, blob: &BlobRef) -> Result<String, blobs::Error> {
        observe::load(&self.blobs, &Value::Blob(blob.clone()))
    }

    /// Names that nothing binds are worth one warning per state.
    pub(crate) fn warn_unknown(&self, state: &StateName, names: Vec<String>) -> Vec<Warning> {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let new = names.into_iter().filter(|name| warned.insert((state.clone(), name.clone())));
        new.map(|name| Warning::UnknownVariable { name }).collect()
    }
}
