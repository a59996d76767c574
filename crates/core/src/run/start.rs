//! The start of a run: its first input, and its first event.

use std::collections::BTreeSet;

use super::program::Program;
use super::settings::Settings;
use crate::ids::{BackendName, Nonce, RunId};
use crate::value::Value;
use serde::{Deserialize, Serialize};

/// Everything that a new run needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    pub run: RunId,
    pub nonce: Nonce,
    /// The workflow as the user named it, as an absolute path.
    pub workflow: String,
    /// The absolute path of the directory or archive that contains the states.
    pub scope: String,
    /// The list of states; see `engine::scope`.
    pub manifest: Value,
    /// The working directory of `main`.
    pub cwd: String,
    /// `--input`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The program, at its beginning.
    #[serde(default, skip_serializing_if = "Program::is_states")]
    pub program: Program,
    pub settings: Settings,
    /// The backends that its states may use; empty in older journals, which do not record them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub backends: BTreeSet<BackendName>,
}
