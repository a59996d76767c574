//! A run that this process owns: its lock is held, its journal open, its definition at hand.
//!
//! Opening follows the order of recovery: the lock, the journal (a torn end is cut), the fold,
//! whatever was left running ended and seen dead, the pinned definition. Only then may anything be
//! decided.

use std::sync::Arc;

use raymond_backends::process::{Grace, Identity, Leftover, leftovers};
use raymond_core::ids::{Nonce, RunId};
use raymond_core::run::{Header, Input, Settings};
use raymond_core::workflow::Definition;
use raymond_store::journal::{self, Torn};
use raymond_store::lock::{self, Claim, Takeover, ThisHost};
use raymond_store::{Blobs, Journal, Lock, RunPaths, disk};

use crate::clock;
use crate::driver::Head;
use crate::fold::{self, FoldError};
use crate::pin::{Pin, PinError};
use crate::project::Project;
use crate::recovery::{self, Attached};
use crate::scope::Origin;

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
    /// The last record that was kept, when everything after it was cut away on request.
    pub rewound: Option<u64>,
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
    /// The journal belongs to another run.
    #[error("the journal in {directory} belongs to the run {found}")]
    Foreign {
        /// Where it was found.
        directory: String,
        /// Whose it is.
        found: RunId,
    },
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
        let opened = match how.truncate_to {
            None => Journal::open(Arc::clone(&project.disk), &paths.journal)?,
            Some(last) => {
                Journal::truncate_to(Arc::clone(&project.disk), &paths.journal, last)?.opened
            }
        };
        let header = fold::header(&opened.header)?;
        check_owner(run, &paths, &header)?;
        let head = Head::of(opened.lines.iter().map(|line| line.body))?;
        let (ended, survivors) = end_leftovers(&nonce(&head, &header), &Grace::default()).await;
        let blobs = project.blobs(&paths);
        blobs.sweep().ok();
        let pin = Pin::load(&head.run.manifest, &blobs)?;
        let found = Found { torn: opened.torn, ended, survivors, rewound: how.truncate_to };
        Ok(Self {
            project: project.clone(),
            lock,
            journal: opened.journal.with_ballast(project.root.ballast(Arc::clone(&project.disk))),
            blobs: Arc::new(blobs),
            head,
            definition: pin.definition()?,
            origin: pin.origin(),
            paths,
            found,
        })
    }

    /// What a new owner has to say first: what became of turns in flight, and that it goes on.
    pub fn resume_inputs(&self, settings: Settings) -> Vec<Input> {
        let mut inputs = self.rewind_inputs();
        inputs.extend(recovery::inputs(&self.head.run, settings, absent));
        inputs
    }

    /// What became of turns in flight, and nothing more.
    pub fn report_inputs(&self) -> Vec<Input> {
        let mut inputs = self.rewind_inputs();
        inputs.extend(recovery::reports(&self.head.run, absent));
        inputs
    }

    fn rewind_inputs(&self) -> Vec<Input> {
        let rewind = |kept| Input::Rewind { kept, nonce: clock::nonce() };
        self.found.rewound.map(rewind).into_iter().collect()
    }
}

/// Whatever was left was ended before: nothing of a turn in flight is there any more.
fn absent(_: &raymond_core::desk::Turn) -> Attached {
    Attached::Absent { progressed: false }
}

fn nonce(head: &Head, header: &Header) -> Nonce {
    if head.seq == 0 { header.nonce.clone() } else { head.run.nonce.clone() }
}

fn check_owner(run: &RunId, paths: &RunPaths, header: &Header) -> Result<(), OwnError> {
    if header.run == *run {
        return Ok(());
    }
    let directory = paths.directory.display().to_string();
    Err(OwnError::Foreign { directory, found: header.run.clone() })
}

/// Ends whatever still carries a marker of the run, and sees it dead.
pub async fn end_leftovers(nonce: &Nonce, grace: &Grace) -> (Vec<Leftover>, Vec<Identity>) {
    let found = leftovers::find(nonce);
    let survivors = leftovers::end(&found, grace).await;
    (found, survivors)
}
