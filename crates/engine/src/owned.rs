//! A run that this process owns: its lock is held, its journal open, its definition at hand.
//!
//! OpenOptions follows the order of recovery: the lock, the journal (a torn end is cut), the fold,
//! whatever was left running ended and seen dead, the pinned definition. Only then may anything be
//! decided.

mod recover_turns;
mod rewind;
mod transcript_costs;

use std::path::PathBuf;
use std::sync::Arc;

use raymond_backends::process::{Identity, Leftover};
use raymond_core::crayfish::Key;
use raymond_core::crayfish::reading::{self, Holds};
use raymond_core::ids::RunId;
use raymond_core::run::{Refusal, Run, Settings};
use raymond_core::value::Value;
use raymond_core::workflow::Definition;
use raymond_store::journal::{self, Torn};
use raymond_store::lock::{self, Claim, Takeover, ThisHost};
use raymond_store::{Blobs, Inbox, Journal, Lock, RunPaths, blobs, disk};

use crate::boot;
use crate::clock;
use crate::copied_run::{ActiveCopy, check_no_active_copy};
use crate::driver::{Driver, DriverError, Head, RecordOnly};
use crate::fold::{self, FoldError};
use crate::git_tracked::{self, GitTracked};
use crate::inspect::Inspection;
use crate::launch::Prepared;
use crate::observe;
use crate::pin::{Pin, PinError};
use crate::project::Project;
use crate::runner::Backends;
use crate::schemas::Schemas;
use crate::scope::Origin;
use crate::snapshot;

use recover_turns::end_leftovers;
pub use recover_turns::{OnUnreadable, check_endable, end_leftover_processes, find_turn};
use rewind::{Rewind, move_discarded_transcripts, rewind};
use transcript_costs::BootState;
pub use transcript_costs::turn_cost;

/// A run that this process owns.
#[derive(Debug)]
pub struct OwnedRun {
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
    /// The schemas of its steps, where somebody has compiled them already.
    pub schemas: Option<Arc<Schemas>>,
    /// What opening it found.
    pub found: OpenReport,
}

/// What opening a run found.
#[derive(Debug, Default)]
pub struct OpenReport {
    /// An unfinished record that was cut off.
    pub torn: Option<Torn>,
    /// Processes that were left running and were ended.
    pub ended: Vec<Leftover>,
    /// Those of them that did not end.
    pub survivors: Vec<Identity>,
    /// Whether the machine has restarted since the last record was written.
    pub restarted: bool,
    /// Where everything went that was cut away on request.
    pub moved: Option<PathBuf>,
}

/// How to open a run.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// Whom it may replace.
    pub takeover: Takeover,
    /// The last record to keep.
    pub truncate_to: Option<u64>,
    /// What becomes of clients that outlived their owner.
    pub clients: LeftoverClients,
}

/// The backends that can read the transcripts of a run with these settings.
pub type BackendsFor<'a> = dyn Fn(&Settings) -> Backends + Sync + 'a;

/// What becomes of clients that outlived their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverClients {
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
    /// A copy of it is driven.
    #[error(transparent)]
    ActiveCopy(#[from] ActiveCopy),
    /// It came with the repository.
    #[error(transparent)]
    GitTracked(#[from] GitTracked),
    /// Its creation never went further than its name.
    #[error("{0} was never started: nothing is recorded")]
    NeverStarted(RunId),
    /// The outcome of a turn may be in a transcript that cannot be read.
    #[error("{why}")]
    Unreadable {
        /// Why, as a sentence.
        why: String,
    },
    /// What opening it found could not be recorded.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Takes the lock of a run.
pub(crate) fn take_lock(
    project: &Project,
    paths: &RunPaths,
    takeover: Takeover,
) -> Result<Lock, lock::Error> {
    Lock::take(project.disk.as_ref(), &ThisHost, &paths.lock, claim(takeover))
}

/// Takes the lock of a run that is to be deleted.
pub(crate) fn take_lock_to_delete(
    project: &Project,
    paths: &RunPaths,
) -> Result<Lock, lock::Error> {
    let claim = claim(Takeover::Never);
    Lock::take_to_delete(project.disk.as_ref(), &ThisHost, &paths.lock, claim)
}

fn claim(takeover: Takeover) -> Claim<'static> {
    Claim { since: clock::now().0, version: env!("CARGO_PKG_VERSION"), takeover }
}

impl OwnedRun {
    /// Opens a run that exists. Whoever has looked at it before hands that over: it need not be verified and folded again
    /// where its journal still ends as it did.
    pub async fn open(
        project: &Project,
        run: &RunId,
        how: OpenOptions,
        seen: Option<Box<Inspection>>,
    ) -> Result<Self, OwnError> {
        Self::open_with_backends(project, run, how, seen, &|_| Backends::default()).await
    }

    /// The same, where these backends read the transcripts of records that are cut away.
    pub async fn open_with_backends(
        project: &Project,
        run: &RunId,
        how: OpenOptions,
        seen: Option<Box<Inspection>>,
        known: &BackendsFor<'_>,
    ) -> Result<Self, OwnError> {
        let paths = project.paths(run);
        git_tracked::check(project, run)?;
        paths.refuse_links(project.disk.as_ref())?;
        let lock = take_lock(project, &paths, how.takeover)?;
        paths.ensure(project.disk.as_ref())?;
        // OpenOptions the journal may write to it.
        let restarted = boot::is_from_earlier_boot(&paths.journal);
        let machine = if restarted { BootState::Restarted } else { BootState::SameBoot };
        let cut = match how.truncate_to {
            Some(last) => rewind(project, &paths, (run, last), (known, machine)).await?,
            None => Rewind::default(),
        };
        let (read, known) = seen.map(|seen| (seen.journal, seen.head)).unzip();
        let known = known.zip(read.as_ref().map(|read| read.cursor));
        let disk = Arc::clone(&project.disk);
        let opened = match read {
            Some(read) => Journal::reopen(disk, &paths.journal, read),
            None => Journal::open(disk, &paths.journal),
        };
        let opened = opened.map_err(|error| explain_unopened(project, error))?;
        let header = fold::header(&opened.header)?;
        fold::check_owner(run, &header)?;
        let mut head = match known.filter(|(_, end)| *end == opened.journal.end()) {
            Some((head, _)) => head,
            None => snapshot::open(&opened.lines, project.disk.as_ref(), Some(&paths.snapshot))?,
        };
        if head.seq == 0 {
            return Err(OwnError::NeverStarted(run.clone()));
        }
        fold::check_run(&header, &head)?;
        check_no_active_copy(project, &header)?;
        // Room for what the next owner has paid for; without it the run goes on all the same.
        project.root.ballast(Arc::clone(&project.disk)).fill().ok();
        let (left, survivors) = end_leftovers(&head.run, how.clients).await;
        let ended = [cut.ended, left].concat();
        move_discarded_transcripts(project, &paths, &opened.lines)?;
        let blobs = project.blobs(&paths);
        paths.sweep(project.disk.as_ref()).ok();
        read_results(&mut head.run, &blobs)?;
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
            schemas: None,
            paths,
            found: OpenReport { torn: opened.torn, moved: cut.moved, ended, survivors, restarted },
        };
        Ok(owned)
    }

    /// Uses the edited states of `prepared` from now on, unless an agent needs one that is gone.
    pub fn adopt(self, prepared: Prepared) -> Result<Result<Self, Refusal>, OwnError> {
        let manifest = Pin::of(&prepared.loaded).store(&self.blobs)?;
        let Self { head, definition, journal, .. } = self;
        let mut driver = Driver::new(head, definition, journal, RecordOnly);
        let verdict = driver.adopt(clock::now(), prepared.definition, manifest)?;
        let (head, definition, journal) = driver.into_parts();
        let origin = prepared.loaded.origin;
        Ok(verdict.map(|()| Self { journal, head, definition, origin, ..self }))
    }
}

/// What steps left is read before anything is decided.
fn read_results(run: &mut Run, blobs: &Blobs) -> Result<(), OwnError> {
    let Some(flow) = &mut run.flow else { return Ok(()) };
    let unread: Vec<(Key, Value)> =
        flow.unread().map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in unread {
        let text = observe::load(blobs, &value)?;
        let json = reading::read_as(Holds::Record, text.as_bytes()).map_err(|why| {
            OwnError::Pin(PinError::Unreadable(format!("the result of {key}: {why}")))
        })?;
        flow.read(&key, json);
    }
    Ok(())
}

/// Why a journal cannot be opened.
fn explain_unopened(project: &Project, error: journal::Error) -> OwnError {
    match fold::explain_bad_header(project.disk.as_ref(), &error) {
        Some(better) => better.into(),
        None => error.into(),
    }
}

/// Requests to an owner that is gone are not for this one: whoever still waits asks again.
fn forget_requests(project: &Project, paths: &RunPaths) {
    let inbox = Inbox::new(Arc::clone(&project.disk), paths.inbox.clone());
    for message in inbox.take_all().unwrap_or_default().messages {
        inbox.remove(&message.key).ok();
    }
}

#[cfg(test)]
mod tests;
