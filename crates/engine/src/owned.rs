//! A run that this process owns: it holds the lock, the open journal and the definition.
//!
//! Opening follows the order of recovery in ARCHITECTURE.md: take the lock, open the journal (an
//! unfinished last record is removed), fold the records, end leftover processes and wait until they
//! are dead, parse the pinned definition. Nothing is decided before all of this is done.
//!
//! `recover_turns` finds out what became of turns in flight, `rewind` discards records, and
//! `transcript_costs` reads the costs of discarded turns. [`crate::launch`] creates new runs.

mod recover_turns;
mod rewind;
mod transcript_costs;

use std::path::PathBuf;
use std::sync::Arc;

use raymond_backends::process::{Identity, Leftover};
use raymond_core::crayfish::StepId;
use raymond_core::decide::Refusal;
use raymond_core::ids::RunId;
use raymond_core::run::{Input, Settings};
use raymond_core::workflow::Definition;
use raymond_store::journal::{self, Torn};
use raymond_store::lock::{self, Takeover};
use raymond_store::{Blobs, Inbox, Journal, Lock, RunPaths, blobs, disk};

use crate::backends::Backends;
use crate::boot;
use crate::clock;
use crate::copied_run::{ActiveCopy, check_no_active_copy};
use crate::driver::{Driver, DriverError, Head, RecordOnly};
use crate::fold::{self, FoldError};
use crate::git_tracked::{self, GitTracked};
use crate::inspect::Inspection;
use crate::pin::{Pin, PinError};
use crate::prepare::Prepared;
use crate::project::Project;
use crate::run_lock::take_lock;
use crate::schemas::Schemas;
use crate::scope::ScopeOrigin;
use crate::snapshot;
use crate::step_results::{ResultsError, read_results};

use recover_turns::end_leftovers;
pub use recover_turns::{OnUnreadable, check_endable, end_leftover_processes, find_turn};
use rewind::{Rewind, RewindTo, move_discarded_transcripts, rewind};
use transcript_costs::BootState;
pub use transcript_costs::turn_cost;

/// A run that this process owns.
#[derive(Debug)]
pub struct OwnedRun {
    pub project: Project,
    pub paths: RunPaths,
    /// Held until this value is dropped.
    pub lock: Lock,
    /// Open for appending.
    pub journal: Journal,
    pub blobs: Arc<Blobs>,
    pub head: Head,
    pub definition: Definition,
    pub origin: ScopeOrigin,
    /// The schemas of its steps that are compiled already.
    pub schemas: Arc<Schemas>,
    /// The findings of opening the run.
    pub found: OpenReport,
}

/// The findings of opening a run.
#[derive(Debug, Default)]
pub struct OpenReport {
    /// The unfinished last record that was removed.
    pub torn: Option<Torn>,
    /// Leftover processes that were ended.
    pub ended: Vec<Leftover>,
    /// Leftover processes that did not end.
    pub survivors: Vec<Identity>,
    /// Whether the machine has restarted since the last record was written.
    pub restarted: bool,
    /// The file with the records that a rewind discarded.
    pub moved: Option<PathBuf>,
}

/// How to open a run.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// Which owner may be replaced.
    pub takeover: Takeover,
    /// The last record to keep, if the run is to be rewound.
    pub truncate_to: Option<u64>,
    pub clients: LeftoverClients,
}

/// Returns the backends that can read the transcripts of a run with these settings.
pub type BackendsFor<'a> = dyn Fn(&Settings) -> Backends + Sync + 'a;

/// What to do with clients that outlived their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverClients {
    /// Adopt them: they finish their turn.
    Adopt,
    /// End them like all other leftover processes.
    End,
}

/// Why this process cannot own a run.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// Another process owns it, or its lock cannot be reached.
    #[error(transparent)]
    Lock(#[from] lock::Error),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error(transparent)]
    Pin(#[from] PinError),
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error(transparent)]
    Blobs(#[from] blobs::Error),
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// Another process drives a copy of it.
    #[error(transparent)]
    ActiveCopy(#[from] ActiveCopy),
    /// It came with the repository.
    #[error(transparent)]
    GitTracked(#[from] GitTracked),
    /// The run was created, but has no record.
    #[error("{0} was never started: nothing is recorded")]
    NeverStarted(RunId),
    /// The outcome of a turn may be in a transcript that cannot be read.
    #[error("{why}")]
    Unreadable {
        /// The reason, as a sentence.
        why: String,
    },
    /// The findings could not be recorded.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl OwnedRun {
    /// Opens a run that exists. A caller that has inspected the run passes the result as `seen`: if
    /// the journal has not changed since, its records are not verified and folded again.
    pub async fn open(
        project: &Project,
        run: &RunId,
        how: OpenOptions,
        seen: Option<Box<Inspection>>,
    ) -> Result<Self, OwnError> {
        Self::open_with_backends(project, run, how, seen, &|_| Backends::default()).await
    }

    /// Opens a run. For a rewind, these backends read the transcripts of the discarded records.
    pub async fn open_with_backends(
        project: &Project,
        run: &RunId,
        how: OpenOptions,
        seen: Option<Box<Inspection>>,
        backends: &BackendsFor<'_>,
    ) -> Result<Self, OwnError> {
        let paths = project.paths(run);
        // Both checks come before the lock, because taking it already writes a file.
        git_tracked::check(project, run)?;
        paths.refuse_links(project.disk.as_ref())?;
        // Everything below writes files of the run or ends its processes, which only one process at
        // a time may do.
        let lock = take_lock(project, &paths, how.takeover)?;
        paths.ensure(project.disk.as_ref())?;
        // Read before the journal is opened: removing an unfinished record changes its time.
        let restarted = boot::is_from_earlier_boot(&paths.journal);
        let machine = if restarted { BootState::Restarted } else { BootState::SameBoot };
        // Before the journal is opened, because opening refuses a damaged journal, and a rewind is
        // how a user removes the damage.
        let cut = match how.truncate_to {
            Some(last) => {
                let to = RewindTo { run, last, backends, machine };
                rewind(project, &paths, &to).await?
            }
            None => Rewind::default(),
        };
        // The head of an earlier inspection is used only if the journal still has the same end.
        let (read, known) = seen.map(|seen| (seen.journal, seen.head)).unzip();
        let known = known.zip(read.as_ref().map(|read| read.cursor));
        let disk = Arc::clone(&project.disk);
        let opened = match read {
            Some(read) => Journal::reopen(disk, &paths.journal, read),
            None => Journal::open(disk, &paths.journal),
        };
        let opened = opened.map_err(|error| explain_unopened(project, error))?;
        let header = fold::header(&opened.header)?;
        // Before the records are folded: a directory that was renamed contains the journal of
        // another run.
        fold::check_owner(run, &header)?;
        let mut head = match known.filter(|(_, end)| *end == opened.journal.end()) {
            Some((head, _)) => head,
            None => snapshot::open(&opened.lines, project.disk.as_ref(), Some(&paths.snapshot))?,
        };
        // A run without a record has no definition to load; `OwnedRun::create` repeats its
        // creation.
        if head.seq == 0 {
            return Err(OwnError::NeverStarted(run.clone()));
        }
        fold::check_run(&header, &head)?;
        // Before any process is ended: the processes of a copy carry the same markers, and its lock
        // is another file.
        check_no_active_copy(project, &header)?;
        // The ballast keeps room on a full disk for outcomes that are already paid for. A full disk
        // now does not stop the run, because it may have room later.
        project.root.ballast(Arc::clone(&project.disk)).fill().ok();
        // Before anything is decided: a leftover process may still write to the files of the run.
        let (left, survivors) = end_leftovers(&head.run, how.clients).await;
        let ended = [cut.ended, left].concat();
        // Before the caller looks for the outcomes of turns: a turn that starts after a rewind may
        // have the number of a discarded one, and must not find its transcript.
        move_discarded_transcripts(project, &paths, &opened.lines)?;
        // The sweep comes before this owner writes, because it would remove its temporary files,
        // too. Only the holder of the lock reads the inbox, so no other process is recording the
        // requests that are forgotten. The steps that fail if a blob or the definition is lost come
        // last: even then the leftover processes are dead.
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
            schemas: Arc::default(),
            paths,
            found: OpenReport { torn: opened.torn, moved: cut.moved, ended, survivors, restarted },
        };
        Ok(owned)
    }

    /// Uses an edited document from now on; `changed` are its edited steps. Returns the input that
    /// records the edit. It belongs before the resume in the same batch, so that no crash can come
    /// between the two.
    pub fn with_document(
        self,
        prepared: Prepared,
        changed: Vec<StepId>,
    ) -> Result<(Self, Input), OwnError> {
        // Stored before the record that refers to it.
        let manifest = Pin::of(&prepared.loaded).store(&self.blobs)?;
        let adopt = Input::Adopt { manifest, changed };
        Ok((Self { definition: prepared.definition, ..self }, adopt))
    }

    /// Uses the edited states of `prepared` from now on. The core refuses if an agent is at a state
    /// that no longer exists.
    pub fn adopt(self, prepared: Prepared) -> Result<Result<Self, Refusal>, OwnError> {
        // The files are stored before the record that refers to them.
        let manifest = Pin::of(&prepared.loaded).store(&self.blobs)?;
        let Self { head, definition, journal, .. } = self;
        let mut driver = Driver::new(head, definition, journal, RecordOnly);
        let verdict = driver.adopt(clock::now(), prepared.definition, manifest)?;
        let (head, definition, journal) = driver.into_parts();
        let origin = prepared.loaded.origin;
        Ok(verdict.map(|()| Self { journal, head, definition, origin, ..self }))
    }
}

/// Returns the best explanation for a journal that cannot be opened.
fn explain_unopened(project: &Project, error: journal::Error) -> OwnError {
    match fold::explain_bad_header(project.disk.as_ref(), &error) {
        Some(better) => better.into(),
        None => error.into(),
    }
}

/// Removes requests to an earlier owner. A process that still waits for an answer asks again; the
/// request of one that gave up must not stop the new owner.
fn forget_requests(project: &Project, paths: &RunPaths) {
    let inbox = Inbox::new(Arc::clone(&project.disk), paths.inbox.clone());
    for message in inbox.take_all().unwrap_or_default().messages {
        inbox.remove(&message.key).ok();
    }
}

#[cfg(test)]
mod tests;
