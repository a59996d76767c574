//! Leftover processes and files of killed calls without a `runId`.
//!
//! Such a call has no run, so no resume would end its processes. A call that is killed leaves the
//! programs that it started, and the files from which they read long texts. The markers of both
//! contain the process of the call and the project of its workspace, so this module never finds
//! anything of a living call, of another project or of another user.
//!
//! `raymond_backends::process::abandoned` is the other half: it writes and reads these markers and
//! searches the processes. This module chooses the project and adds the files. Leftovers of runs
//! are in `owned::recover_turns`.

use std::path::{Path, PathBuf};

use raymond_backends::exec::scratch;
use raymond_backends::process::leftovers::{self, Leftover};
use raymond_backends::process::{
    Grace, Identity, find_abandoned, is_abandoned_in, unrecorded_nonce,
};
use raymond_core::ids::Nonce;

use crate::clock;
use crate::project::Project;

/// The leftovers of killed calls in a project.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// Programs that still run.
    pub processes: Vec<Leftover>,
    /// Files that are useless after the programs have ended.
    pub files: Vec<PathBuf>,
}

/// The leftovers that could not be removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RemovalFailures {
    /// Processes that did not end.
    pub processes: Vec<Identity>,
    /// Files, with the reason.
    pub files: Vec<(PathBuf, String)>,
}

/// Finds the leftovers of killed calls in this project.
pub fn find(project: &Project) -> Abandoned {
    let tag = tag(project.root.project());
    let files = scratch::find(|run| is_abandoned_in(&tag, run));
    Abandoned { processes: find_abandoned(&tag), files }
}

/// Ends these processes, and then removes the files.
pub async fn remove(found: &Abandoned) -> RemovalFailures {
    // Processes first, because they read the files.
    let processes = leftovers::end(&found.processes, &Grace::default()).await;
    let failed = |path: &PathBuf| {
        let error = std::fs::remove_file(path).err()?;
        Some((path.clone(), error.to_string()))
    };
    RemovalFailures { processes, files: found.files.iter().filter_map(failed).collect() }
}

/// Returns a nonce for a stateless call of this process in a workspace.
pub(crate) fn nonce(workspace: &Path) -> Nonce {
    let project = Project::locate(workspace);
    let place = project.as_ref().map_or(workspace, |project| project.root.project());
    unrecorded_nonce(&tag(place), &clock::nonce())
}

/// Returns a short name for a project: part of the hash of its path.
fn tag(project: &Path) -> String {
    // In hexadecimal digits: 64 bits are enough to tell apart the projects of one user, and the tag
    // is part of the environment of every process.
    const LENGTH: usize = 16;
    // Without links, so that all paths to one project give the same tag.
    let path = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes());
    hash.to_hex()[..LENGTH].to_owned()
}
