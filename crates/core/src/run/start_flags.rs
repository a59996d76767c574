//! What a person named when a run began.
//!
//! None of it governs the run: a document is pinned with its schemas, and an agent knows where it
//! works. It is kept for whoever begins such a run anew.

use serde::{Deserialize, Serialize};

use crate::ids::BackendName;

/// What was named when a run began, where it was.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartFlags {
    /// `--workspace`, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// `--schema-path`, each relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schema_paths: Vec<String>,
    /// `--backend`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendName>,
}
