//! The start of a run.

use std::collections::BTreeSet;

use super::settings::Settings;
use crate::ids::{BackendName, Nonce, RunId};
use crate::value::Value;
use serde::{Deserialize, Serialize};

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Its id.
    pub run: RunId,
    /// Its nonce.
    pub nonce: Nonce,
    /// The workflow as it was named, absolute.
    pub workflow: String,
    /// The directory or archive that is the scope, absolute.
    pub scope: String,
    /// The list of states: see `engine::scope`.
    pub manifest: Value,
    /// Where `main` starts to work.
    pub cwd: String,
    /// `--input`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What governs it.
    pub settings: Settings,
    /// The backends that its states may ask; none where that was not written down.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub backends: BTreeSet<BackendName>,
}
