//! Flags that a user gave when a run started.
//!
//! They do not influence the run, because its document is pinned with its schemas and each agent
//! knows its working directory. They are kept for a command that starts the same run again.

use serde::{Deserialize, Serialize};

use crate::ids::BackendName;

/// The flags of the start, if given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartFlags {
    /// `--workspace`, as an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// `--schema-path`, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schema_paths: Vec<String>,
    /// `--backend`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendName>,
}
