//! Refuses to touch the processes of a run while an owner drives a copy of it.
//!
//! A project may be copied with its runs. The processes of both copies carry the same markers, but
//! each copy has its own lock, so the lock does not show that the other copy is active. Before
//! Raymond ends or adopts processes, it looks at all lock files that a process holds open and
//! compares the headers of their journals.

use std::path::{Path, PathBuf};

use raymond_backends::process::leftovers::find_open_files;
use raymond_core::ids::RunId;
use raymond_core::run::Header;
use raymond_store::Lock;
use raymond_store::host::{Life, ThisHost};

use crate::fold;
use crate::project::Project;

/// Another process drives a copy of the run.
#[derive(Debug, thiserror::Error)]
#[error("process {pid} drives a copy of {run}: {}", place.display())]
pub struct ActiveCopy {
    pub run: RunId,
    /// The owner of the copy.
    pub pid: u32,
    /// The directory of the copy.
    pub place: PathBuf,
}

/// Checks that no process drives a copy of this run.
pub fn check_no_active_copy(project: &Project, header: &Header) -> Result<(), ActiveCopy> {
    let run = &header.run;
    let own = project.paths(run).lock.canonicalize().ok();
    // Every copy has the same path below its project, wherever that is.
    let end = Path::new("runs").join(run.as_str()).join("lock");
    let others = find_open_files(&end).into_iter().filter(|lock| Some(lock) != own.as_ref());
    for lock in others {
        let Some(place) = lock.parent() else { continue };
        // A run of the same name is a copy only if its header, which contains a nonce, is the same.
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
