//! The costs of deleted runs, so that the sums of a project remain after `prune`.
//!
//! `.raymond/deleted-costs.jsonl` has one line for each deleted run. The costs are written before
//! the run is deleted. A reader ignores the line of a run that still exists, so an interrupted
//! `prune` counts nothing twice.

use std::path::PathBuf;

use raymond_core::ids::{Nonce, RunId};
use raymond_core::view::costs::RunCosts;
use raymond_engine::project::Project;
use raymond_store::disk;
use serde::{Deserialize, Serialize};

const NAME: &str = "deleted-costs.jsonl";

/// The costs of one deleted run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeletedCosts {
    pub(crate) run: RunId,
    /// Distinguishes runs of the same name.
    pub(crate) nonce: Nonce,
    pub(crate) costs: RunCosts,
}

/// Returns the costs of all deleted runs. A line that cannot be parsed is ignored, because a newer
/// release may have written it.
pub(crate) fn read(project: &Project) -> Vec<DeletedCosts> {
    let text = std::fs::read_to_string(path(project)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Adds the costs of a run that is about to be deleted.
pub(crate) fn add(project: &Project, deleted: &DeletedCosts) -> Result<(), disk::Error> {
    let text = std::fs::read_to_string(path(project)).unwrap_or_default();
    let is_of_this = |line: &&str| {
        serde_json::from_str::<DeletedCosts>(line).is_ok_and(|known| known.nonce == deleted.nonce)
    };
    let line = serde_json::to_string(deleted).unwrap_or_default();
    let lines = text.lines().filter(|line| !is_of_this(line)).chain([line.as_str(), ""]);
    let text = lines.collect::<Vec<_>>().join("\n");
    project.root.replace(project.disk.as_ref(), NAME, text.as_bytes())
}

fn path(project: &Project) -> PathBuf {
    project.root.path().join(NAME)
}
