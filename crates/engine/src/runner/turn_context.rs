//! Everything that all turns of a run share: backends, blobs, directories and settings.
//!
//! The context never changes while the run is active, except for the list of warnings. The data of
//! a single turn is in its `TurnSpec`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use raymond_backends::contract::{PromptRequest, StartedTurn};
use raymond_backends::process::Grace;
use raymond_core::agent::Location;
use raymond_core::run::RunContext;
use raymond_core::run::settings::Pinning;
use raymond_core::run::warning::Warning;
use raymond_core::value::{BlobRef, Value};
use raymond_store::{Blobs, blobs};

use crate::backends::Backends;
use crate::handed::Handing;
use crate::observe;
use crate::schemas::Schemas;
use crate::scope::ScopeOrigin;
use crate::turn_files::{kept_prompt, write_private};

/// The data that every turn of a run shares.
#[derive(Debug)]
pub(crate) struct TurnContext {
    pub(crate) run: RunContext,
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) origin: ScopeOrigin,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) backends: Backends,
    pub(crate) grace: Grace,
    /// The directory of transcripts.
    pub(crate) transcripts: PathBuf,
    /// The directory of the clients' configurations, if each agent has its own.
    pub(crate) homes: PathBuf,
    /// The directory for pinned copies of scripts and for their results.
    pub(crate) private: PathBuf,
    /// The directory of long results that parents received from their workers.
    pub(crate) handed: PathBuf,
    /// The directory of prompts that cannot be rendered again.
    pub(crate) prompts: PathBuf,
    /// Warnings about unknown template variables that were given already.
    pub(crate) warned: Mutex<BTreeSet<(Location, String)>>,
}

impl TurnContext {
    /// Returns the source of the lists that parents receive.
    pub(crate) fn handing(&self) -> Handing<'_> {
        Handing { blobs: &self.blobs, directory: &self.handed }
    }

    /// Keeps the message of a prompt whose state is not pinned: an edit may change the state, so
    /// that the message could not be rendered again.
    pub(crate) fn keep_prompt(&self, request: &PromptRequest) -> Result<(), blobs::Error> {
        match self.run.pinning {
            Pinning::Pinned => Ok(()),
            Pinning::Unpinned => {
                let StartedTurn { turn, attempt, .. } = &request.started;
                let path = kept_prompt(&self.prompts, turn, *attempt);
                Ok(write_private(&path, request.message().as_bytes())?)
            }
        }
    }

    pub(crate) fn load(&self, blob: &BlobRef) -> Result<String, blobs::Error> {
        observe::load(&*self.blobs, &Value::Blob(blob.clone()))
    }

    /// Returns the warnings about template variables of a state that were not given before: a loop
    /// would repeat them at each visit.
    pub(crate) fn new_warnings(
        &self,
        location: &Location,
        mut warnings: Vec<Warning>,
    ) -> Vec<Warning> {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.retain(|warning| warned.insert((location.clone(), warning.to_string())));
        warnings
    }
}
