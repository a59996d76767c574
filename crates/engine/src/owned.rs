//! A run that this process owns: its lock is held, its journal open, its definition at hand.
//!
//! Opening follows the order of recovery: the lock, the journal (a torn end is cut), the fold,
//! whatever was left running ended and seen dead, the pinned definition. Only then may anything be
//! decided.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use raymond_backends::contract::{self, Started};
use raymond_backends::process::{Grace, Identity, Leftover, Marker, leftovers};
use raymond_core::budget::Cost;
use raymond_core::desk::{Lane, Turn};
use raymond_core::ids::RunId;
use raymond_core::run::effect::in_flight;
use raymond_core::run::input::Interruption;
use raymond_core::run::{Input, Record, Refusal, Run, Settings, batch};
use raymond_core::workflow::Definition;
use raymond_store::journal::{self, Torn};
use raymond_store::lock::{self, Claim, Takeover, ThisHost};
use raymond_store::{Blobs, Inbox, Journal, Lock, RunPaths, blobs, disk};

use crate::clock;
use crate::driver::{Driver, DriverError, Head, Nobody};
use crate::fold::{self, FoldError};
use crate::launch::Prepared;
use crate::observe::answered;
use crate::pin::{PLATFORM, Pin, PinError};
use crate::project::Project;
use crate::recovery::{self, Attached};
use crate::scope::Origin;
use crate::shell::{Backends, transcript};
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
    /// What becomes of clients that outlived their owner.
    pub clients: Clients,
}

/// What becomes of clients that outlived their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// They are adopted, and finish their turn.
    Adopt,
    /// They are ended like everything else that was left.
    End,
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
    /// A value could not be stored.
    #[error(transparent)]
    Blobs(#[from] blobs::Error),
    /// Its directory cannot be used.
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// Its creation never went further than its name.
    #[error("{0} was never started: nothing is recorded")]
    NeverStarted(RunId),
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
        if head.seq == 0 {
            return Err(OwnError::NeverStarted(run.clone()));
        }
        // Room for what the next owner has paid for; without it the run goes on all the same.
        project.root.ballast(Arc::clone(&project.disk)).fill().ok();
        let (ended, survivors) = end_strays(&head.run, how.clients).await;
        let blobs = project.blobs(&paths);
        blobs.sweep().ok();
        forget_requests(project, &paths);
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
        Ok(owned)
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
    pub async fn resume_inputs(
        &mut self,
        settings: Settings,
        backends: &Backends,
    ) -> Result<Vec<Input>, OwnError> {
        let reports = self.report_inputs(backends).await?;
        Ok(recovery::inputs(reports, settings))
    }

    /// What became of turns in flight, and nothing more. Whatever a client left that is gone itself
    /// is ended.
    pub async fn report_inputs(&mut self, backends: &Backends) -> Result<Vec<Input>, OwnError> {
        let run = &self.head.run;
        let mut gone = BTreeSet::new();
        let mut failed = None;
        let inputs = recovery::reports(run, |turn| {
            let found = attach(self, turn, backends).unwrap_or_else(|error| {
                failed = Some(error);
                Attached::Running
            });
            if !matches!(found, Attached::Running) {
                gone.insert(Marker::new(&run.nonce, &turn.id, turn.attempt));
            }
            found
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let mut left = leftovers::find(&run.nonce);
        left.retain(|left| left.marker.as_ref().is_some_and(|marker| gone.contains(marker)));
        self.found.survivors.extend(leftovers::end(&left, &Grace::default()).await);
        self.found.ended.extend(left);
        Ok(inputs)
    }
}

/// Looks for a turn in flight; a large answer is stored.
fn attach(owned: &Owned, turn: &Turn, backends: &Backends) -> Result<Attached, blobs::Error> {
    let run = &owned.head.run;
    Ok(match find(run, &owned.paths, turn, backends) {
        contract::Attached::Running => Attached::Running,
        contract::Attached::Absent { cost, progressed } => Attached::Absent { cost, progressed },
        contract::Attached::Finished(answer) => {
            let cwd = run.agents.get(&turn.id.agent).map_or("/", |agent| agent.cwd.as_str());
            let outcome = answered(answer, Interruption::Crash, cwd.as_ref(), &owned.blobs)?;
            Attached::Finished(outcome)
        }
    })
}

/// What there is of a turn in flight whose owner is gone; nothing is changed by looking. A script
/// never outlives its owner.
pub fn find(run: &Run, paths: &RunPaths, turn: &Turn, backends: &Backends) -> contract::Attached {
    let Lane::Prompt(name) = &turn.lane else {
        return contract::Attached::Absent { cost: Cost::Free, progressed: false };
    };
    let (Some(backend), Some(plan)) = (backends.get(name), turn.current.clone()) else {
        return contract::Attached::Absent { cost: Cost::Unknown, progressed: false };
    };
    backend.attach(&Started {
        nonce: run.nonce.clone(),
        turn: turn.id.clone(),
        attempt: turn.attempt,
        plan,
        transcript: transcript(&paths.transcripts, &turn.id, turn.attempt),
        timeout: None,
        idle_timeout: None,
    })
}

/// Ends what was left running and cannot be adopted.
async fn end_strays(run: &Run, clients: Clients) -> (Vec<Leftover>, Vec<Identity>) {
    let adoptable: BTreeSet<Marker> = match clients {
        Clients::End => BTreeSet::new(),
        Clients::Adopt => in_flight(run)
            .filter(|turn| turn.lane != Lane::Script)
            .map(|turn| Marker::new(&run.nonce, &turn.id, turn.attempt))
            .collect(),
    };
    let mut found = leftovers::find(&run.nonce);
    found.retain(|left| !left.marker.as_ref().is_some_and(|marker| adoptable.contains(marker)));
    let survivors = leftovers::end(&found, &Grace::default()).await;
    (found, survivors)
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
            let rewound = rewound(project, paths, last)?;
            Journal::truncate_to(disk, &paths.journal, last, &rewound)
                .map(|cut| (cut.opened, cut.moved))
        }
    };
    opened.map_err(|error| match fold::not_ours(project.disk.as_ref(), &error) {
        Some(better) => better.into(),
        None => error.into(),
    })
}

/// The record that follows the last one to keep. What is cut away may have written into sessions,
/// which must never be resumed: so it is cut and told in one step.
fn rewound(project: &Project, paths: &RunPaths, last: u64) -> Result<Vec<u8>, OwnError> {
    let read = Journal::read(project.disk.as_ref(), &paths.journal)?;
    let mut head = Head::unborn();
    for line in read.lines.iter().take_while(|line| line.seq <= last) {
        head.fold(&fold::record(line.body, line.seq)?);
    }
    if last == 0 {
        return Err(OwnError::NeverStarted(fold::header(&read.header)?.run));
    }
    if head.seq < last {
        // There is no such record, as whoever cuts will say.
        return Ok(Vec::new());
    }
    let rewind = Input::Rewind { kept: last, nonce: clock::nonce() };
    let at = clock::now();
    // Nothing of the states is asked for, and they may not be readable.
    let (states, platform) = (BTreeMap::new(), PLATFORM);
    let nothing = Definition { entry: "".into(), states, platform };
    let steps = batch(&mut head.run, &nothing, at, vec![rewind]).steps;
    let record = Record { seq: last + 1, at, steps };
    serde_json::to_vec(&record).map_err(|error| OwnError::Driver(DriverError::Encode(error)))
}

/// Requests to an owner that is gone are not for this one: whoever still waits asks again.
fn forget_requests(project: &Project, paths: &RunPaths) {
    let inbox = Inbox::new(Arc::clone(&project.disk), paths.inbox.clone());
    for message in inbox.take_all().unwrap_or_default().messages {
        inbox.remove(&message.key).ok();
    }
}
