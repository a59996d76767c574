//! A run of which there is a copy: its processes carry the same markers as those of the copy.
//!
//! The directory of a project may be copied with its runs. The lock of the copy says nothing of who drives
//! the original, so before anything is ended or adopted, the locks that are held are looked at.

use std::path::{Path, PathBuf};

use raymond_backends::process::leftovers::held_open;
use raymond_core::ids::RunId;
use raymond_core::run::Header;
use raymond_store::Lock;
use raymond_store::lock::{Life, ThisHost};

use crate::fold;
use crate::project::Project;

/// A copy of the run is driven.
#[derive(Debug, thiserror::Error)]
#[error("{run} is driven in another place, by process {pid}: {}", place.display())]
pub struct ActiveCopy {
    /// The run.
    pub run: RunId,
    /// Who drives it.
    pub pid: u32,
    /// The directory of the copy.
    pub place: PathBuf,
}

/// Checks that nobody drives a copy of this run.
pub fn check_no_active_copy(project: &Project, header: &Header) -> Result<(), ActiveCopy> {
    let run = &header.run;
    let own = project.paths(run).lock.canonicalize().ok();
    let end = Path::new("runs").join(run.as_str()).join("lock");
    let others = held_open(&end).into_iter().filter(|lock| Some(lock) != own.as_ref());
    for lock in others {
        let Some(place) = lock.parent() else { continue };
        if let Some(pid) = driving_process(project, &lock)
            && fold::read_header(project.disk.as_ref(), &place.join("journal.jsonl"))
                .is_some_and(|first| first.is_ok_and(|copy| copy == *header))
        {
            return Err(ActiveCopy { run: run.clone(), pid, place: place.to_owned() });
        }
    }
    Ok(())
}

fn driving_process(project: &Project, lock: &Path) -> Option<u32> {
    match Lock::owner(project.disk.as_ref(), &ThisHost, lock) {
        Ok(Some((owner, Life::Alive | Life::Suspended))) => Some(owner.process.pid),
        Ok(Some((_, Life::Gone | Life::Elsewhere)) | None) | Err(_) => None,
    }
}
