//! Deleting a run that nobody needs.
//!
//! It is done under the lock of the run, and only when the run is what it was when the decision was
//! made. It needs no free space, because it is how a user frees a full disk. Its directory is renamed
//! first: a resume that comes too late finds no run, never half of one. What does not belong to this user,
//! lies behind a link or came with the repository is left alone.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raymond_backends::process::{Leftover, leftovers};
use raymond_core::ids::RunId;
use raymond_store::{disk, lock};
use rustix::process::geteuid;

use crate::copied_run::ActiveCopy;
use crate::fold;
use crate::git_tracked::{self, GitTracked};
use crate::inspect::{InspectError, inspect};
use crate::owned::take_lock_to_delete;
use crate::project::Project;

/// Why a run is not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    /// Its directory is a link or not a directory at all.
    #[error("{} is a link or not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// It came with the repository.
    #[error(transparent)]
    GitTracked(#[from] GitTracked),
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
    ActiveCopy(#[from] ActiveCopy),
    /// Something has happened to it since it was looked at.
    #[error("{0} has changed since it was read")]
    Changed(RunId),
    /// Nothing is recorded of it, and it is not old enough to be given up.
    #[error("{0} may be starting just now")]
    MayBeStarting(RunId),
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
    Inspect(#[from] InspectError),
    /// It cannot be removed.
    #[error(transparent)]
    Disk(#[from] disk::Error),
}

/// Deletes a run whose last record is `seq`; 0 when nothing was ever recorded. Its files are set aside, and
/// removed by whoever sweeps.
pub fn discard(project: &Project, run: &RunId, seq: u64) -> Result<(), DiscardError> {
    let (paths, disk) = (project.paths(run), project.disk.as_ref());
    check_own(project, run)?;
    if seq == 0 && may_be_starting(project, run) {
        return Err(DiscardError::MayBeStarting(run.clone()));
    }
    let lock = take_lock_to_delete(project, &paths)?;
    let now = match inspect(project, run) {
        Ok(seen) => {
            let left = leftovers::find(&seen.head.run.nonce);
            if !left.is_empty() {
                return Err(DiscardError::Processes { run: run.clone(), left });
            }
            seen.head.seq
        }
        // RecordOnly but the holder of this lock drives it.
        Err(InspectError::NothingYet { .. }) => 0,
        Err(InspectError::Journal(error)) if error.is_missing() => 0,
        Err(error) => return Err(error.into()),
    };
    let is_lost = now == 0 && traces(project, run) == Traces::OfWork;
    if now != seq || is_lost {
        return Err(DiscardError::Changed(run.clone()));
    }
    paths.set_aside(disk)?;
    drop(lock);
    Ok(())
}

/// What there is of a run beside its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traces {
    /// Nothing but what the first moments of any run leave.
    None,
    /// Stored values as well: those of its definition, when its journal has got as far as its header.
    Values,
    /// What only a run has that was started.
    OfWork,
}

/// Looks for traces of a run whose journal tells nothing. What cannot be seen counts as work.
pub fn traces(project: &Project, run: &RunId) -> Traces {
    let paths = project.paths(run);
    let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
    let Ok(entries) = fs::read_dir(&paths.directory) else { return Traces::OfWork };
    let is_work = |path: PathBuf| match path.file_name().and_then(|name| name.to_str()) {
        Some("lock" | "console.log") => false,
        Some("journal.jsonl") => !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()),
        Some("blobs") if has_header(project, run) => false,
        _ => !has_no_files(&path),
    };
    if is_there(&paths.state) || entries.flatten().any(|entry| is_work(entry.path())) {
        return Traces::OfWork;
    }
    if has_no_files(&paths.blobs) { Traces::None } else { Traces::Values }
}

fn has_header(project: &Project, run: &RunId) -> bool {
    let first = fold::read_header(project.disk.as_ref(), &project.paths(run).journal);
    first.is_some_and(|first| first.is_ok())
}

/// Whether there is no file below a directory, or no directory at all.
fn has_no_files(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::read_dir(path)
            .is_ok_and(|entries| entries.flatten().all(|entry| has_no_files(&entry.path()))),
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Whether a run without any record is so young that its owner may be about to write the first.
pub fn may_be_starting(project: &Project, run: &RunId) -> bool {
    const SOON: Duration = Duration::from_mins(1);
    let directory = project.paths(run).directory;
    let changed = fs::symlink_metadata(directory).and_then(|found| found.modified());
    changed.is_ok_and(|at| match at.elapsed() {
        Ok(age) => age < SOON,
        Err(ahead) => ahead.duration() < SOON,
    })
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

/// Checks that a run is this user's to delete, or to end what it left: its directory is one, no link leads
/// to it, and it did not come with the repository.
pub fn check_own(project: &Project, run: &RunId) -> Result<(), DiscardError> {
    let paths = project.paths(run);
    check_directory(&paths.directory)?;
    paths.refuse_links_above(project.disk.as_ref())?;
    Ok(git_tracked::check(project, run)?)
}

fn check_directory(path: &Path) -> Result<(), DiscardError> {
    let path = path.to_owned();
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

#[cfg(test)]
mod tests;
