//! Reads a run without owning it: its journal, its status and its owner.
//!
//! Every command that only shows something uses [`inspect`]. It takes no lock and writes nothing,
//! so it works beside a living owner and on a read-only disk. To change a run, open it with
//! [`crate::owned`] or ask its owner with [`crate::request`].

use std::path::PathBuf;

use raymond_backends::process::{Leftover, Marker, find_escaped, leftovers};
use raymond_core::ids::RunId;
use raymond_core::run::{Header, Record, effect};
use raymond_core::time::Timestamp;
use raymond_core::view::{self, Status};
use raymond_store::disk;
use raymond_store::host::{Host as _, Life, ThisHost};
use raymond_store::journal::{self, ReadJournal};
use raymond_store::lock::{Owner, Takeover};
use raymond_store::{Journal, Lock, lock};
use serde::Deserialize;

use crate::driver::Head;
use crate::fold::{self, FoldError};
use crate::project::Project;
use crate::{git_tracked, snapshot};

/// A run as it was read.
#[derive(Debug)]
pub struct Inspection {
    pub header: Header,
    pub head: Head,
    pub journal: ReadJournal,
    /// The process that drives the run, if it lives or is on another host.
    pub owner: Option<Owner>,
    pub status: Status,
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The owner has not created the journal yet, or is about to restore it.
    #[error("nothing of {run} is recorded yet")]
    NothingYet { run: RunId, owner: Box<Owner> },
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error(transparent)]
    Lock(#[from] lock::Error),
}

/// Reads a run.
pub fn inspect(project: &Project, run: &RunId) -> Result<Inspection, InspectError> {
    // The owner is read before the journal: if it ends in between, the journal is already complete.
    // In the other order a run could look crashed although its last record says that it ended.
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
        // The run was created but never started: only the header contains its name.
        (head.run.id, head.run.nonce) = (header.run.clone(), header.nonce.clone());
    }
    fold::check_run(&header, &head)?;
    let alive = if owner.is_some() { view::OwnerState::Alive } else { view::OwnerState::Gone };
    let status = view::status(&head.run, alive);
    Ok(Inspection { header, head, journal: read, owner, status })
}

/// The part of a record that contains its time.
#[derive(Deserialize)]
struct RecordTime {
    at: Timestamp,
}

/// Returns when a run started, from its first record alone. The record is not verified: `None` and
/// a wrong time are possible for a damaged journal.
pub fn unverified_start(project: &Project, run: &RunId) -> Option<Timestamp> {
    // Bytes. A record contains texts of at most 16 KiB each; the first record has few of them.
    const BEGINNING: usize = 256 * 1024;
    let mut file = project.disk.open(&project.paths(run).journal, disk::OpenMode::Read).ok()?;
    let size = usize::try_from(file.size().ok()?).unwrap_or(BEGINNING).min(BEGINNING);
    let mut bytes = vec![0; size];
    let read = file.read_at(0, &mut bytes).ok()?;
    // The first line is the header.
    let line = bytes[..read].split_inclusive(|byte| *byte == b'\n').nth(1)?;
    Some(serde_json::from_slice::<RecordTime>(line).ok()?.at)
}

/// Returns when the last record of a run was written, from the end of its journal alone. `None`
/// means that it has no record. The record is not verified, as in [`unverified_start`].
pub fn unverified_last_activity(project: &Project, run: &RunId) -> Option<Timestamp> {
    // Bytes. Most last records are shorter than the first of these, and all sound ones than the
    // second.
    const END: u64 = 64 * 1024;
    const MOST: u64 = 64 * 1024 * 1024;
    let mut file = project.disk.open(&project.paths(run).journal, disk::OpenMode::Read).ok()?;
    let size = file.size().ok()?;
    last_time(file.as_mut(), size.saturating_sub(END), size)
        .or_else(|| last_time(file.as_mut(), size.saturating_sub(MOST), size))
}

/// Returns the time of the last record between two offsets of a journal.
fn last_time(file: &mut dyn disk::Handle, start: u64, end: u64) -> Option<Timestamp> {
    let mut bytes = vec![0; usize::try_from(end - start).ok()?];
    let read = file.read_at(start, &mut bytes).ok()?;
    // The header has no time, and a line that begins before `start` is not JSON.
    let mut lines = bytes[..read].rsplit(|byte| *byte == b'\n');
    let record = lines.find_map(|line| serde_json::from_slice::<RecordTime>(line).ok())?;
    Some(record.at)
}

/// Returns the path of the snapshot if it can be trusted. A snapshot that came with the repository
/// may contain other things than its journal.
fn own_snapshot(project: &Project, run: &RunId) -> Option<PathBuf> {
    let path = project.paths(run).snapshot;
    project.disk.metadata(&path).ok()?;
    git_tracked::check(project, run).is_ok().then_some(path)
}

/// Returns the owner of a run, if it lives or is on another host.
pub fn owner(project: &Project, run: &RunId) -> Result<Option<Owner>, lock::Error> {
    Ok(owner_and_life(project, run)?.map(|(owner, _)| owner))
}

/// Returns the owner of a run and whether it lives.
pub fn owner_and_life(
    project: &Project,
    run: &RunId,
) -> Result<Option<(Owner, Life)>, lock::Error> {
    let found = Lock::owner(project.disk.as_ref(), &ThisHost, &project.paths(run).lock)?;
    Ok(found.filter(|(_, life)| *life != Life::Gone))
}

impl Inspection {
    /// Returns all records of the journal.
    pub fn records(&self) -> impl Iterator<Item = Result<Record, FoldError>> {
        self.journal.lines.iter().map(|line| fold::record(line.body, line.seq))
    }

    /// Refuses a run that has an owner, with the error that taking its lock would give.
    pub fn check_free(&self, project: &Project, takeover: Takeover) -> Result<(), lock::Error> {
        let Some(owner) = self.owner.clone().map(Box::new) else { return Ok(()) };
        let path = project.paths(&self.header.run).lock;
        match (self.driven_elsewhere().is_some(), takeover) {
            (true, Takeover::OtherHost) => Ok(()),
            (true, Takeover::Never) => Err(lock::Error::OtherHost { path, owner }),
            (false, _) => Err(lock::Error::Held { path, owner: Some(owner) }),
        }
    }

    /// Returns the owner if it is on another host, where this process cannot see whether it lives.
    pub fn driven_elsewhere(&self) -> Option<&Owner> {
        self.owner.as_ref().filter(|owner| ThisHost.life(&owner.process) == Life::Elsewhere)
    }

    /// Returns the owner if it is suspended. Nothing happens in the run until the user continues
    /// it.
    pub fn suspended_owner(&self) -> Option<&Owner> {
        self.owner.as_ref().filter(|owner| ThisHost.life(&owner.process) == Life::Suspended)
    }
}

/// Refuses a run whose owner is on another host: if that owner is dead, a request would never be
/// answered.
pub(crate) fn check_here(project: &Project, run: &RunId) -> Result<(), lock::Error> {
    let path = project.paths(run).lock;
    match Lock::owner(project.disk.as_ref(), &ThisHost, &path)? {
        Some((owner, Life::Elsewhere)) => {
            Err(lock::Error::OtherHost { path, owner: Box::new(owner) })
        }
        Some((_, Life::Alive | Life::Suspended | Life::Gone)) | None => Ok(()),
    }
}

/// Returns the processes of a run that do not belong to a turn in flight.
///
/// Without an owner these are all processes of the run. With an owner these are the processes that
/// finished turns left behind. The processes of another host cannot be seen.
pub fn leftover_processes(look: &Inspection) -> Vec<Leftover> {
    let run = &look.head.run;
    let Some(owner) = &look.owner else {
        return leftovers::find(&run.nonce);
    };
    let is_here = ThisHost.life(&owner.process).is_here();
    let pid = i32::try_from(owner.process.pid).ok().filter(|_| is_here);
    let in_flight = effect::in_flight(run).map(|turn| Marker::of(&run.nonce, turn)).collect();
    pid.map_or_else(Vec::new, |pid| find_escaped(pid, &run.nonce, &in_flight))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use raymond_core::run::start::Start;
    use raymond_core::run::{Event, Input, RecordStep, Settings, record};
    use raymond_core::value::Value;
    use raymond_store::Root;
    use raymond_store::disk::RealDisk;

    use super::*;

    /// Creates the journal of a run with these records.
    fn journal(project: &Project, run: &RunId, records: &[Record]) -> Journal {
        let paths = project.paths(run);
        project.root.ensure(&RealDisk).unwrap();
        paths.ensure(&RealDisk).unwrap();
        let header = Header { format: record::FORMAT, run: run.clone(), nonce: "n".into() };
        let header = serde_json::to_vec(&header).unwrap();
        let mut journal = Journal::create(Arc::new(RealDisk), &paths.journal, &header).unwrap();
        for record in records {
            journal.append(&serde_json::to_vec(record).unwrap()).unwrap();
        }
        journal
    }

    fn started(run: &RunId, input: Option<String>) -> Record {
        let start = Start {
            run: run.clone(),
            nonce: "n".into(),
            workflow: "w".to_owned(),
            scope: "w".to_owned(),
            manifest: "".into(),
            cwd: "/".to_owned(),
            input: input.map(Value::Inline),
            program: raymond_core::run::Program::States,
            settings: Settings::default(),
            backends: BTreeSet::new(),
        };
        let events = vec![Event::RunStarted(Box::new(start.clone()))];
        let steps = vec![RecordStep { cause: Input::Start(Box::new(start)), events }];
        Record { seq: 1, at: Timestamp(1), steps }
    }

    #[test]
    fn last_record_decides_the_time_of_activity() {
        let place = tempfile::tempdir().unwrap();
        let project = Project { disk: Arc::new(RealDisk), root: Root::in_directory(place.path()) };
        let record = |seq: u64, at: u64| Record { seq, at: Timestamp(at), steps: Vec::new() };
        let check = |run: &str, records: &[Record], rest: &str, expected: Option<u64>| {
            let run = RunId::new(run);
            drop(journal(&project, &run, records));
            let path = project.paths(&run).journal;
            let mut text = std::fs::read_to_string(&path).unwrap();
            text.push_str(rest);
            std::fs::write(&path, text).unwrap();
            let found = unverified_last_activity(&project, &run);
            assert_eq!(found, expected.map(Timestamp), "{run}");
        };
        let first = || started(&"r".into(), None);
        check("header", &[], "", None);
        check("one", &[first()], "", Some(1));
        check("three", &[first(), record(2, 5), record(3, 9)], "", Some(9));
        check("torn", &[first(), record(2, 5)], "{\"seq\":3,\"at\":7", Some(5));
        let long = started(&"r".into(), Some("x".repeat(200_000)));
        check("long", &[long], "", Some(1));
        assert_eq!(unverified_last_activity(&project, &"nobody".into()), None);
    }

    // proves: S20
    #[test]
    fn snapshot_from_the_repository_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let project = Project { disk: Arc::new(RealDisk), root: Root::in_directory(place.path()) };
        let run = RunId::new("r");
        let (paths, record) = (project.paths(&run), started(&run, None));
        let journal = journal(&project, &run, std::slice::from_ref(&record));
        let mut head = Head::empty();
        head.fold(&record);
        head.run.keys.insert("invented".to_owned());
        snapshot::save(&head, journal.sum(), &RealDisk, &paths.snapshot).unwrap();

        let is_believed = || inspect(&project, &run).unwrap().head.run.keys.contains("invented");
        assert!(is_believed());
        std::fs::create_dir(place.path().join(".git")).unwrap();
        std::fs::write(place.path().join(".git/index"), "DIRC .raymond/runs/r/journal.jsonl")
            .unwrap();
        assert!(!is_believed());
    }
}
