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

/// Whether git tracks files of a run. An index of version 4 (which is not git's default) shortens paths,
/// and is not understood.
pub(crate) fn is_tracked(project: &Project, run: &RunId) -> bool {
    let index = project.root.project().join(".git/index");
    let wanted = format!("{}/runs/{run}/", raymond_store::root::NAME);
    text_of(&index).is_some_and(|index| memmem::find(&index, wanted.as_bytes()).is_some())
}

fn text_of(index: &Path) -> Option<Vec<u8>> {
    let found = std::fs::metadata(index).ok()?;
    (found.is_file() && found.len() <= LARGEST).then(|| std::fs::read(index).ok())?
}
