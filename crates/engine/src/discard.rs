//! Deleting a run that nobody needs.
//!
//! It is done under the lock of the run, and only when the run is what it was when the decision was
//! made. Its directory is renamed first: a resume that comes too late finds no run, never half of
//! one. What does not belong to this user, or is only a link, is left alone.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use raymond_backends::process::{Leftover, leftovers};
use raymond_core::ids::RunId;
use raymond_store::lock::Takeover;
use raymond_store::{disk, journal, lock};
use rustix::process::geteuid;

use crate::elsewhere::Elsewhere;
use crate::look::{LookError, look};
use crate::owned::take;
use crate::project::Project;

/// Why a run is not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    /// Its directory is a link, or no directory at all.
    #[error("{} is a link, or no directory", .0.display())]
    NotADirectory(PathBuf),
    /// Its directory belongs to somebody else.
    #[error("{} belongs to user {owner}", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The number of its user.
        owner: u32,
    },
    /// Somebody drives it.
    #[error(transparent)]
    Lock(#[from] lock::Error),
    /// A copy of it is driven.
    #[error(transparent)]
    Elsewhere(#[from] Elsewhere),
    /// Something has happened to it since it was looked at.
    #[error("{0} has gone on since it was looked at")]
    Changed(RunId),
    /// Processes of it still run.
    #[error("processes of {run} still run")]
    Processes {
        /// The run.
        run: RunId,
        /// The processes.
        left: Vec<Leftover>,
    },
    /// It cannot be read.
    #[error(transparent)]
    Look(#[from] LookError),
    /// It cannot be removed.
    #[error(transparent)]
    Disk(#[from] disk::Error),
}

/// Deletes a run whose last record is `seq`; 0 when nothing was ever recorded.
pub fn discard(project: &Project, run: &RunId, seq: u64) -> Result<(), DiscardError> {
    let (paths, disk) = (project.paths(run), project.disk.as_ref());
    check_own(project, run)?;
    let lock = take(project, &paths, Takeover::Never)?;
    let now = match look(project, run) {
        Ok(seen) => {
            let left = leftovers::find(&seen.head.run.nonce);
            if !left.is_empty() {
                return Err(DiscardError::Processes { run: run.clone(), left });
            }
            seen.head.seq
        }
        Err(LookError::Journal(journal::Error::Missing(_) | journal::Error::Unborn(_))) => 0,
        Err(error) => return Err(error.into()),
    };
    if now != seq {
        return Err(DiscardError::Changed(run.clone()));
    }
    paths.set_aside(disk)?;
    drop(lock);
    Ok(project.root.sweep(disk)?)
}

/// How many bytes the files of a run have. What cannot be seen is not counted.
pub fn size(project: &Project, run: &RunId) -> u64 {
    let paths = project.paths(run);
    size_of(&paths.directory) + size_of(&paths.state)
}

/// How many bytes a file has, or all files below a directory. Links are not followed.
pub fn size_of(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_of(&entry.path())).sum()
}

/// Checks that a run is this user's to delete: its directory is one, and no link to another.
pub fn check_own(project: &Project, run: &RunId) -> Result<(), DiscardError> {
    let path = project.paths(run).directory;
    let found = fs::symlink_metadata(&path).map_err(|source| {
        let (attempt, path) = ("look at", path.clone());
        DiscardError::Disk(disk::Error { attempt, path, source })
    })?;
    match found.uid() {
        _ if !found.is_dir() => Err(DiscardError::NotADirectory(path)),
        owner if owner != geteuid().as_raw() => Err(DiscardError::Foreign { path, owner }),
        _ => Ok(()),
    }
}
