//! Whether a run came with the repository.
//!
//! `.raymond/` ignores itself in git, so whoever finds a run of it in the index was handed that run by
//! somebody else: with a clone, a pull, a checked out branch. What it pinned is a program of theirs,
//! and nobody asked for it here.

use std::path::Path;

use memchr::memmem;
use raymond_core::ids::RunId;

use crate::project::Project;

/// Larger indices are not searched: they are of millions of files.
const LARGEST: u64 = 256 << 20;

/// Git tracks files of the run.
#[derive(Debug, thiserror::Error)]
#[error("{0} came with the repository: git tracks its files")]
pub struct Tracked(pub RunId);

/// Refuses a run whose files git tracks. An index of version 4 (which is not git's default) shortens paths,
/// and is not understood.
pub(crate) fn check(project: &Project, run: &RunId) -> Result<(), Tracked> {
    let index = project.root.project().join(".git/index");
    let wanted = format!("{}/runs/{run}/", raymond_store::root::NAME);
    match text_of(&index).and_then(|index| memmem::find(&index, wanted.as_bytes())) {
        Some(_) => Err(Tracked(run.clone())),
        None => Ok(()),
    }
}

fn text_of(index: &Path) -> Option<Vec<u8>> {
    let found = std::fs::metadata(index).ok()?;
    (found.is_file() && found.len() <= LARGEST).then(|| std::fs::read(index).ok())?
}
