//! The pinned definition of a run: one value that contains every file of the scope.
//!
//! A small scope is part of the first record; a large one is a blob. Parsing it again gives the
//! definition with which the run started, even if the files have changed since. Unpinned runs use
//! the same format and record each change.

use serde::{Deserialize, Serialize};

use raymond_core::diagnostic::Diagnostic;
use raymond_core::extension::Platform;
use raymond_core::run::Run;
use raymond_core::value::Value;
use raymond_core::workflow::{Definition, EntryPoint, SourceFile};
use raymond_store::{Blobs, blobs};

use crate::scope::{LoadedScope, ScopeOrigin};

/// Decides which scripts can run on this machine.
pub const PLATFORM: Platform = if cfg!(windows) { Platform::Windows } else { Platform::Unix };

/// A scope as it is pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The state that the user named as the start, or `None` for the entry of the scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    /// Whether `ralph` repeats that state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ralph: bool,
    /// Whether it is a document of steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    steps: bool,
    /// Whether scripts have to be unpacked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    archive: bool,
    files: Vec<SourceFile>,
}

/// Why a pinned definition cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    #[error("could not reach the pinned definition")]
    Blobs(#[from] blobs::Error),
    #[error("could not read the pinned definition: {0}")]
    Unreadable(String),
    /// The definition has mistakes that an earlier release did not find.
    #[error("the pinned definition has mistakes")]
    Invalid(Vec<Diagnostic>),
}

impl Pin {
    /// Pins a loaded scope.
    pub fn of(loaded: &LoadedScope) -> Self {
        let (start, ralph) = match &loaded.start {
            EntryPoint::Entry | EntryPoint::Steps => (None, false),
            EntryPoint::State(name) => (Some(name.clone()), false),
            EntryPoint::Ralph(name) => (Some(name.clone()), true),
        };
        let files = loaded.files.clone();
        Self {
            start,
            ralph,
            steps: loaded.start == EntryPoint::Steps,
            archive: loaded.origin == ScopeOrigin::Archive,
            files,
        }
    }

    /// Stores the pin, and returns the value for the record.
    pub fn store(&self, blobs: &Blobs) -> Result<Value, PinError> {
        let text =
            serde_json::to_string(self).map_err(|error| PinError::Unreadable(error.to_string()))?;
        let mut put = |bytes: &[u8]| crate::observe::BlobStore::put(blobs, bytes);
        Ok(Value::keep(&text, &mut put)?)
    }

    pub fn load(value: &Value, blobs: &Blobs) -> Result<Self, PinError> {
        let text = crate::observe::load(blobs, value)?;
        serde_json::from_str(&text).map_err(|error| PinError::Unreadable(error.to_string()))
    }

    /// Returns the definition that a run uses.
    pub fn definition_of(run: &Run, blobs: &Blobs) -> Result<Definition, PinError> {
        Self::load(&run.manifest, blobs)?.definition()
    }

    /// Stores the definition of an active run again, after its blob was deleted.
    pub fn restore(
        value: &Value,
        definition: &Definition,
        origin: ScopeOrigin,
        blobs: &Blobs,
    ) -> Result<(), PinError> {
        let Value::Blob(_) = value else { return Ok(()) };
        let named = || Some(definition.entry.to_string());
        // A definition does not contain how the run was started. The value is a hash, so the right
        // combination is the one that gives the same value.
        for (start, ralph) in [(None, false), (named(), false), (named(), true)] {
            let files = definition.states.values().map(|state| state.source.clone()).collect();
            let pin =
                Self { start, ralph, steps: false, archive: origin == ScopeOrigin::Archive, files };
            if pin.store(blobs)? == *value {
                return Ok(());
            }
        }
        Err(PinError::Unreadable("it is not what the run started with".to_owned()))
    }

    pub fn origin(&self) -> ScopeOrigin {
        if self.archive { ScopeOrigin::Archive } else { ScopeOrigin::Directory }
    }

    /// Parses the definition.
    pub fn definition(&self) -> Result<Definition, PinError> {
        let named = if self.ralph { EntryPoint::Ralph } else { EntryPoint::State };
        let start = match &self.start {
            _ if self.steps => EntryPoint::Steps,
            Some(start) => named(start.clone()),
            None => EntryPoint::Entry,
        };
        // This release may find mistakes that the release which pinned the files did not.
        let parsed = Definition::parse_pinned(self.files.clone(), &start, PLATFORM);
        Ok(parsed.map_err(PinError::Invalid)?.definition)
    }
}
