//! A run that this process owns: its lock is held, its journal open, its definition at hand.
//!
//! Opening follows the order of recovery: the lock, the journal (a torn end is cut), the fold,
//! whatever was left running ended and seen dead, the pinned definition. Only then may anything be
//! decided.

use std::path::PathBuf;
use std::sync::Arc;

use raymond_backends::process::{Grace, Identity, Leftover, leftovers};
use raymond_core::ids::{Nonce, RunId};
use raymond_core::run::{Header, Input, Refusal, Settings};
use raymond_core::workflow::Definition;
use raymond_store::journal::{self, Torn};
use raymond_store::lock::{self, Claim, Takeover, ThisHost};
use raymond_store::{Blobs, Journal, Lock, RunPaths, disk};

use crate::clock;
use crate::driver::{Driver, DriverError, Head, Nobody};
use crate::fold::{self, FoldError};
use crate::launch::Prepared;
use crate::pin::{Pin, PinError};
use crate::project::Project;
use crate::recovery::{self, Attached};
use crate::scope::Origin;
use crate::snapshot;

/// A run that this process owns.
#[derive(Debug)]
pub struct Owned {
    /// Where it is kept.
    pub project: Project,
    /// Where its parts lie.
    pub paths: RunPaths,
    /// Held until the end.
    pub lock: Lock,
    /// Open at its end.
    pub journal: Journal,
    /// Its blobs.
    pub blobs: Arc<Blobs>,
    /// The run.
    pub head: Head,
    /// Its states.
    pub definition: Definition,
    /// Where its scripts were found.
    pub origin: Origin,
    /// What opening it found.
    pub found: Found,
}

/// What opening a run found.
#[derive(Debug, Default)]
pub struct Found {
    /// An unfinished record that was cut off.
    pub torn: Option<Torn>,
    /// Processes that were left running and were ended.
    pub ended: Vec<Leftover>,
    /// Those of them that did not end.
    pub survivors: Vec<Identity>,
    /// Where everything went that was cut away on request.
    pub moved: Option<PathBuf>,
}

/// How to open a run.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Whom it may replace.
    pub takeover: Takeover,
    /// The last record to keep.
    pub truncate_to: Option<u64>,
}

/// Why a run cannot be owned.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// Another process owns it, or its lock cannot be reached.
    #[error(transparent)]
    Lock(#[from] lock::Error),
    /// Its journal cannot be used.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// Its journal is not a run.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// Its definition cannot be used.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// Its directory cannot be used.
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// What opening it found could not be recorded.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Takes the lock of a run.
pub(crate) fn take(
    project: &Project,
    paths: &RunPaths,
    takeover: Takeover,
) -> Result<Lock, lock::Error> {
    let claim = Claim { since: clock::now().0, version: env!("CARGO_PKG_VERSION"), takeover };
    Lock::take(project.disk.as_ref(), &ThisHost, &paths.lock, claim)
}

impl Owned {
    /// Opens a run that exists.
    pub async fn open(project: &Project, run: &RunId, how: Opening) -> Result<Self, OwnError> {
        let paths = project.paths(run);
        let lock = take(project, &paths, how.takeover)?;
        paths.ensure(project.disk.as_ref())?;
        let (opened, moved) = open_journal(project, &paths, how.truncate_to)?;
        let header = fold::header(&opened.header)?;
        fold::check_owner(run, &header)?;
        let head = snapshot::open(&opened.lines, project.disk.as_ref(), &paths.snapshot)?;
        let (ended, survivors) = end_leftovers(&nonce(&head, &header), &Grace::default()).await;
        let blobs = project.blobs(&paths);
        blobs.sweep().ok();
        let pin = Pin::load(&head.run.manifest, &blobs)?;
        let owned = Self {
            project: project.clone(),
            lock,
            journal: opened.journal.with_ballast(project.root.ballast(Arc::clone(&project.disk))),
            blobs: Arc::new(blobs),
            head,
            definition: pin.definition()?,
            origin: pin.origin(),
            paths,
            found: Found { torn: opened.torn, moved, ended, survivors },
        };
        match how.truncate_to {
            None => Ok(owned),
            Some(kept) => owned.rewound(kept),
        }
    }

    /// Records that the run was cut back, before anything else can fail: what was cut away may have
    /// written into sessions, which must never be resumed.
    fn rewound(self, kept: u64) -> Result<Self, OwnError> {
        let rewind = Input::Rewind { kept, nonce: clock::nonce() };
        let Self { head, definition, journal, .. } = self;
        let mut driver = Driver::new(head, definition, journal, Nobody);
        driver.handle(clock::now(), vec![rewind])?;
        let (head, definition, journal) = driver.into_parts();
        Ok(Self { journal, head, definition, ..self })
    }

    /// Uses the edited states of `prepared` from now on, unless an agent needs one that is gone.
    pub fn adopt(self, prepared: Prepared) -> Result<Result<Self, Refusal>, OwnError> {
        let manifest = Pin::of(&prepared.loaded).store(&self.blobs)?;
        let Self { head, definition, journal, .. } = self;
        let mut driver = Driver::new(head, definition, journal, Nobody);
        let verdict = driver.adopt(clock::now(), prepared.definition, manifest)?;
        let (head, definition, journal) = driver.into_parts();
        let origin = prepared.loaded.origin;
        Ok(verdict.map(|()| Self { journal, head, definition, origin, ..self }))
    }

    /// What a new owner has to say first: what became of turns in flight, and that it goes on.
    pub fn resume_inputs(&self, settings: Settings) -> Vec<Input> {
        recovery::inputs(&self.head.run, settings, absent)
    }

    /// What became of turns in flight, and nothing more.
    pub fn report_inputs(&self) -> Vec<Input> {
        recovery::reports(&self.head.run, absent)
    }
}

/// Opens the journal of a run, cut back first when that is asked for; and where the rest went.
fn open_journal(
    project: &Project,
    paths: &RunPaths,
    truncate_to: Option<u64>,
) -> Result<(journal::Opened, Option<PathBuf>), OwnError> {
    let disk = Arc::clone(&project.disk);
    let opened = match truncate_to {
        None => Journal::open(disk, &paths.journal).map(|opened| (opened, None)),
        Some(last) => {
            Journal::truncate_to(disk, &paths.journal, last).map(|cut| (cut.opened, cut.moved))
        }
    };
    opened.map_err(|error| match fold::not_ours(project.disk.as_ref(), &error) {
        Some(better) => better.into(),
        None => error.into(),
    })
}

/// Whatever was left was ended before: nothing of a turn in flight is there any more.
fn absent(_: &raymond_core::desk::Turn) -> Attached {
    Attached::Absent { progressed: false }
}

fn nonce(head: &Head, header: &Header) -> Nonce {
    if head.seq == 0 { header.nonce.clone() } else { head.run.nonce.clone() }
}

/// Ends whatever still carries a marker of the run, and sees it dead.
pub async fn end_leftovers(nonce: &Nonce, grace: &Grace) -> (Vec<Leftover>, Vec<Identity>) {
    let found = leftovers::find(nonce);
    let survivors = leftovers::end(&found, grace).await;
    (found, survivors)
}
