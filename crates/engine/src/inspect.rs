//! A look at a run without owning it: its journal as it stands, and whether somebody drives it.

use std::path::PathBuf;

use raymond_backends::process::{Leftover, Marker, escaped, leftovers};
use raymond_core::ids::RunId;
use raymond_core::run::{Header, Record, effect};
use raymond_core::view::{self, Status};
use raymond_store::journal::{self, Read};
use raymond_store::lock::{Host as _, Life, Owner, Takeover, ThisHost};
use raymond_store::{Journal, Lock, lock};

use crate::driver::Head;
use crate::fold::{self, FoldError};
use crate::project::Project;
use crate::{git_tracked, snapshot};

/// A run as it stands.
#[derive(Debug)]
pub struct Inspection {
    /// The first line of its journal.
    pub header: Header,
    /// The run.
    pub head: Head,
    /// Its journal, as it was read.
    pub journal: Read,
    /// Who drives it.
    pub owner: Option<Owner>,
    /// Where it is.
    pub status: Status,
}

/// Why a run cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// Somebody drives it who has not made its journal yet, or is about to make it anew.
    #[error("nothing of {run} is recorded yet")]
    NothingYet {
        /// The run.
        run: RunId,
        /// Who drives it.
        owner: Box<Owner>,
    },
    /// Its journal cannot be read.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// Its journal is not a run.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// Its lock cannot be read.
    #[error(transparent)]
    Lock(#[from] lock::Error),
}

/// Looks at a run.
pub fn inspect(project: &Project, run: &RunId) -> Result<Inspection, InspectError> {
    // The owner first: one that ends in between has written all it will ever write.
    let owner = owner(project, run)?;
    let disk = project.disk.as_ref();
    let read = Journal::read(disk, &project.paths(run).journal);
    let read = read.map_err(|error| match (fold::explain_bad_header(disk, &error), &owner) {
        (Some(better), _) => better.into(),
        (None, Some(owner)) if error.is_missing() => {
            InspectError::NothingYet { run: run.clone(), owner: Box::new(owner.clone()) }
        }
        (None, _) => InspectError::Journal(error),
    })?;
    let header = fold::header(&read.header)?;
    fold::check_owner(run, &header)?;
    let snapshot = own_snapshot(project, run);
    let mut head = snapshot::open(&read.lines, disk, snapshot.as_deref())?;
    if head.seq == 0 {
        // Its creation never went further than its name.
        (head.run.id, head.run.nonce) = (header.run.clone(), header.nonce.clone());
    }
    fold::check_run(&header, &head)?;
    let alive = if owner.is_some() { view::Owner::Alive } else { view::Owner::Gone };
    let status = view::status(&head.run, alive);
    Ok(Inspection { header, head, journal: read, owner, status })
}

/// The snapshot of a run that did not come with the repository: one that did may say what its journal does not.
fn own_snapshot(project: &Project, run: &RunId) -> Option<PathBuf> {
    let path = project.paths(run).snapshot;
    project.disk.metadata(&path).ok()?;
    git_tracked::check(project, run).is_ok().then_some(path)
}

/// The process that drives a run, when it lives, or cannot be seen from here.
pub fn owner(project: &Project, run: &RunId) -> Result<Option<Owner>, lock::Error> {
    Ok(owner_and_life(project, run)?.map(|(owner, _)| owner))
}

/// The same, and whether it lives.
pub fn owner_and_life(
    project: &Project,
    run: &RunId,
) -> Result<Option<(Owner, Life)>, lock::Error> {
    let found = Lock::owner(project.disk.as_ref(), &ThisHost, &project.paths(run).lock)?;
    Ok(found.filter(|(_, life)| *life != Life::Gone))
}

impl Inspection {
    /// Everything that happened.
    pub fn records(&self) -> impl Iterator<Item = Result<Record, FoldError>> {
        self.journal.lines.iter().map(|line| fold::record(line.body, line.seq))
    }

    /// Refuses a run that somebody drives, as taking its lock would.
    pub fn check_free(&self, project: &Project, takeover: Takeover) -> Result<(), lock::Error> {
        let Some(owner) = self.owner.clone().map(Box::new) else { return Ok(()) };
        let path = project.paths(&self.header.run).lock;
        match (self.driven_elsewhere().is_some(), takeover) {
            (true, Takeover::OtherHost) => Ok(()),
            (true, Takeover::Never) => Err(lock::Error::OtherHost { path, owner }),
            (false, _) => Err(lock::Error::Held { path, owner: Some(owner) }),
        }
    }

    /// The owner that is on another host: nobody here can see whether it lives.
    pub fn driven_elsewhere(&self) -> Option<&Owner> {
        self.owner.as_ref().filter(|owner| ThisHost.life(&owner.process) == Life::Elsewhere)
    }

    /// The owner that is suspended: nothing happens in the run until someone continues it.
    pub fn suspended_owner(&self) -> Option<&Owner> {
        self.owner.as_ref().filter(|owner| ThisHost.life(&owner.process) == Life::Suspended)
    }
}

/// Refuses a run whose owner is on another host: it may be gone, and nobody would ever answer.
pub(crate) fn check_here(project: &Project, run: &RunId) -> Result<(), lock::Error> {
    let path = project.paths(run).lock;
    match Lock::owner(project.disk.as_ref(), &ThisHost, &path)? {
        Some((owner, Life::Elsewhere)) => {
            Err(lock::Error::OtherHost { path, owner: Box::new(owner) })
        }
        Some((_, Life::Alive | Life::Suspended | Life::Gone)) | None => Ok(()),
    }
}

/// Processes of a run that no turn in flight accounts for: all of them when nobody drives it, those
/// that a turn left behind when somebody does. An owner elsewhere is not looked at.
pub fn leftover_processes(look: &Inspection) -> Vec<Leftover> {
    let run = &look.head.run;
    let Some(owner) = &look.owner else {
        return leftovers::find(&run.nonce);
    };
    let is_here = ThisHost.life(&owner.process).is_here();
    let pid = i32::try_from(owner.process.pid).ok().filter(|_| is_here);
    let in_flight = effect::in_flight(run).map(|turn| Marker::of(&run.nonce, turn)).collect();
    pid.map_or_else(Vec::new, |pid| escaped(pid, &run.nonce, &in_flight))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use raymond_core::run::input::Start;
    use raymond_core::run::{Event, Input, Settings, Step, record};
    use raymond_core::time::Timestamp;
    use raymond_store::Root;
    use raymond_store::disk::Files;

    use super::*;

    // proves: S20
    #[test]
    fn a_snapshot_that_came_with_the_repository_is_not_believed() {
        let place = tempfile::tempdir().unwrap();
        let project = Project { disk: Arc::new(Files), root: Root::in_directory(place.path()) };
        let run = RunId::new("r");
        let paths = project.paths(&run);
        project.root.ensure(&Files).unwrap();
        paths.ensure(&Files).unwrap();
        let header = Header { format: record::FORMAT, run: run.clone(), nonce: "n".into() };
        let header = serde_json::to_vec(&header).unwrap();
        let mut journal = Journal::create(Arc::new(Files), &paths.journal, &header).unwrap();
        let start = Start {
            run: run.clone(),
            nonce: "n".into(),
            workflow: "w".to_owned(),
            scope: "w".to_owned(),
            manifest: "".into(),
            cwd: "/".to_owned(),
            input: None,
            settings: Settings::default(),
            backends: BTreeSet::new(),
        };
        let events = vec![Event::RunStarted(Box::new(start.clone()))];
        let steps = vec![Step { cause: Input::Start(Box::new(start)), events }];
        let record = Record { seq: 1, at: Timestamp(1), steps };
        journal.append(&serde_json::to_vec(&record).unwrap()).unwrap();
        let mut head = Head::empty();
        head.fold(&record);
        head.run.keys.insert("invented".to_owned());
        snapshot::save(&head, journal.sum(), &Files, &paths.snapshot).unwrap();

        let is_believed = || inspect(&project, &run).unwrap().head.run.keys.contains("invented");
        assert!(is_believed());
        std::fs::create_dir(place.path().join(".git")).unwrap();
        std::fs::write(place.path().join(".git/index"), "DIRC .raymond/runs/r/journal.jsonl")
            .unwrap();
        assert!(!is_believed());
    }
}
