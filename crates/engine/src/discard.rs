//! Deletes a run.
//!
//! This happens under the lock of the run, and only if the run has not changed since the user
//! decided. It needs no free space, because it is how a user frees a full disk. The directory is
//! renamed first: a resume that comes too late finds no run, never half of one. Runs of another
//! user, behind a link or from the repository are refused. Which runs to delete is decided by
//! `raymond prune`.

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
use crate::project::Project;
use crate::run_lock::take_lock_to_delete;

/// Why a run is not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    #[error("{} is a link or not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// It came with the repository.
    #[error(transparent)]
    GitTracked(#[from] GitTracked),
    /// Its directory belongs to another user.
    #[error("{} belongs to user {owner}", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The user id of the other user.
        owner: u32,
    },
    /// Another process owns it.
    #[error(transparent)]
    Lock(#[from] lock::Error),
    /// Another process drives a copy of it.
    #[error(transparent)]
    ActiveCopy(#[from] ActiveCopy),
    /// The run has new records since it was inspected.
    #[error("{0} has changed since it was read")]
    Changed(RunId),
    /// The run has no record yet, and is so young that its owner may be about to write one.
    #[error("{0} may be starting just now")]
    MayBeStarting(RunId),
    #[error("processes of {run} still run")]
    Processes {
        run: RunId,
        /// The processes.
        left: Vec<Leftover>,
    },
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    Disk(#[from] disk::Error),
}

/// Deletes a run whose last record is `seq`, or 0 if it has no record. The files are renamed here,
/// and removed by the next sweep.
pub fn discard(project: &Project, run: &RunId, seq: u64) -> Result<(), DiscardError> {
    let (paths, disk) = (project.paths(run), project.disk.as_ref());
    check_own(project, run)?;
    if seq == 0 && may_be_starting(project, run) {
        return Err(DiscardError::MayBeStarting(run.clone()));
    }
    // From here on no process can resume the run.
    let lock = take_lock_to_delete(project, &paths)?;
    let now = match inspect(project, run) {
        Ok(seen) => {
            let left = leftovers::find(&seen.head.run.nonce);
            // Without the run no command would find these processes again.
            if !left.is_empty() {
                return Err(DiscardError::Processes { run: run.clone(), left });
            }
            seen.head.seq
        }
        // The error names an owner, but that owner is this process, which holds the lock.
        Err(InspectError::NothingYet { .. }) => 0,
        Err(InspectError::Journal(error)) if error.is_missing() => 0,
        Err(error) => return Err(error.into()),
    };
    // A run that worked has a journal. If the journal is missing now, something else is wrong, and
    // the files may be all that is left of the work.
    let is_lost = now == 0 && traces(project, run) == Traces::OfWork;
    if now != seq || is_lost {
        return Err(DiscardError::Changed(run.clone()));
    }
    paths.move_to_removed(disk)?;
    drop(lock);
    Ok(())
}

/// The files of a run besides its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traces {
    /// Only files that every run has from its first moment.
    None,
    /// Also stored values: the pinned definition, if the journal has its header.
    Values,
    /// Files that only a started run has.
    OfWork,
}

/// Looks for files of a run whose journal has no record. Files that cannot be read count as work,
/// so that nothing of value is deleted.
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

/// Returns whether a directory is missing or contains no file at any depth.
fn has_no_files(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::read_dir(path)
            .is_ok_and(|entries| entries.flatten().all(|entry| has_no_files(&entry.path()))),
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Returns whether a run without a record is so young that its owner may be about to write the
/// first.
pub fn may_be_starting(project: &Project, run: &RunId) -> bool {
    // Creating a run takes milliseconds. A minute allows for a machine that is very busy.
    const SOON: Duration = Duration::from_mins(1);
    let directory = project.paths(run).directory;
    let changed = fs::symlink_metadata(directory).and_then(|found| found.modified());
    changed.is_ok_and(|at| match at.elapsed() {
        Ok(age) => age < SOON,
        // The clock was set back since: the distance is what counts.
        Err(ahead) => ahead.duration() < SOON,
    })
}

/// Returns the size of the files of a run in bytes. Files that cannot be read are not counted.
pub fn size(project: &Project, run: &RunId) -> u64 {
    let paths = project.paths(run);
    size_of(&paths.directory) + size_of(&paths.state)
}

/// Returns the size of a file, or of all files below a directory, in bytes. Links are not followed.
pub fn size_of(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_of(&entry.path())).sum()
}

/// Checks that this user may delete a run or end its processes: its directory is not behind a link,
/// belongs to this user, and did not come with the repository.
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
