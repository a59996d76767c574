//! The directory of a run, as its owner uses it.
//!
//! The owner reads requests from the inbox, writes the state file and snapshots, and restores the
//! directory if another program deletes it while the run is active. The journal stays open all the
//! time, so a deleted directory loses no record. Opening and recovery are in [`crate::owned`].

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use raymond_core::run::Input;
use raymond_core::view::Status;
use raymond_core::workflow::Definition;
use raymond_store::journal::{self, Presence};
use raymond_store::lock::Takeover;
use raymond_store::{Blobs, Inbox, Journal, Lock, RunPaths, lock};

use super::TICK_INTERVAL;
use crate::driver::{Head, Log};
use crate::feed::{FeedCursor, NoteKind};
use crate::observe::with_stored_answer;
use crate::owned::OwnError;
use crate::pin::Pin;
use crate::project::Project;
use crate::run_lock::take_lock;
use crate::scope::ScopeOrigin;
use crate::stop_key::request_of_key;
use crate::{snapshot, statefile};

/// The journal, shared between the driver, which appends, and the tick, which checks whether the
/// file still exists.
#[derive(Debug, Clone)]
pub(super) struct SharedJournal(Arc<Mutex<Journal>>);

impl SharedJournal {
    pub(super) fn new(journal: Journal) -> Self {
        Self(Arc::new(Mutex::new(journal)))
    }

    /// Returns the place of the last record.
    pub(super) fn cursor(&self) -> FeedCursor {
        let journal = self.journal();
        FeedCursor { seq: journal.seq(), sum: journal.sum() }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for SharedJournal {
    type Error = journal::Error;

    fn append(&mut self, body: &[u8]) -> Result<(), journal::Error> {
        Log::append(&mut *self.journal(), body)
    }
}

/// The parts of an owned run that the driver does not need.
pub(super) struct RunDirectory {
    pub(super) project: Project,
    pub(super) paths: RunPaths,
    pub(super) journal: SharedJournal,
    pub(super) blobs: Arc<Blobs>,
    pub(super) origin: ScopeOrigin,
    /// Declared after the journal because fields are dropped in this order: another process may own
    /// the run only after the journal is closed here.
    pub(super) lock: Lock,
    pub(super) written_state: WrittenState,
    /// The number of the last record in the last snapshot.
    pub(super) snapshot_seq: u64,
    pub(super) ignored: BTreeSet<String>,
}

/// When the state file was written last, and with which status.
#[derive(Debug, Default)]
pub(super) struct WrittenState {
    written: Option<(Instant, Status)>,
    is_stale: bool,
}

/// The content of the inbox.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) inputs: Vec<Input>,
    /// Notes about files that are not requests.
    pub(super) notes: Vec<NoteKind>,
}

impl RunDirectory {
    /// Reads the requests in the inbox. A file that is not a request is reported once and ignored.
    pub(super) fn requests(&mut self) -> Requests {
        let mut requests = Requests::default();
        // An inbox that cannot be read is tried again at the next tick.
        let Ok(taken) = self.inbox().take_all() else { return requests };
        let mut ignored: Vec<(String, String)> = taken
            .invalid
            .into_iter()
            .map(|invalid| (invalid.name, invalid.why.to_string()))
            .collect();
        for message in taken.messages {
            match request(&message.bytes, &message.key) {
                Some(input) => requests.inputs.push(with_stored_answer(input, &self.blobs)),
                None => {
                    ignored.push((format!("{}.json", message.key), "unknown request".to_owned()));
                }
            }
        }
        for (name, why) in ignored {
            // A file that could not be renamed appears at every tick.
            if self.ignored.insert(name.clone()) {
                requests.notes.push(NoteKind::RequestIgnored { name, why });
            }
        }
        requests
    }

    /// Removes a request after its answer, a record or a refusal, is durable.
    pub(super) fn remove_request(&self, key: &str) {
        self.inbox().remove(key).ok();
    }

    fn inbox(&self) -> Inbox {
        Inbox::new(Arc::clone(&self.project.disk), self.paths.inbox.clone())
    }

    /// Writes the state file if the status changed, and otherwise at most once a second: a run with
    /// thousands of agents commits much more often than a person reads the file.
    pub(super) fn update_state_file(&mut self, head: &Head, status: Status) {
        let due = self
            .written_state
            .written
            .is_none_or(|(at, said)| said != status || at.elapsed() >= TICK_INTERVAL);
        if due {
            self.write_state(head, status);
        } else {
            self.written_state.is_stale = true;
        }
    }

    /// Writes the state file if it is stale.
    pub(super) fn write_stale_state(&mut self, head: &Head, status: Status) {
        if self.written_state.is_stale {
            self.write_state(head, status);
        }
    }

    pub(super) fn write_state(&mut self, head: &Head, status: Status) {
        // The state file is derived from the journal, so a failed write does not stop the run. The
        // next tick tries again.
        let disk = self.project.disk.as_ref();
        let failed = statefile::write(disk, &self.paths.state, head, status).is_err();
        self.written_state =
            WrittenState { written: Some((Instant::now(), status)), is_stale: failed };
    }

    /// Saves a snapshot of a long run, so that opening or inspecting it need not fold all records.
    pub(super) fn save_snapshot(&mut self, head: &Head) {
        if head.seq >= self.snapshot_seq + snapshot::MIN_RECORDS {
            let sum = self.journal.journal().sum();
            snapshot::save(head, sum, self.project.disk.as_ref(), &self.paths.snapshot).ok();
            self.snapshot_seq = head.seq;
        }
    }

    /// Restores the directory if it vanished. Errors of the disk are ignored, because the next tick
    /// tries again. If another process has taken or replaced the run, this owner gives it up.
    pub(super) fn restore(
        &mut self,
        head: &Head,
        definition: &Definition,
    ) -> Result<Presence, OwnError> {
        match self.try_restore(head, definition) {
            Err(
                OwnError::Disk(_)
                | OwnError::Lock(lock::Error::Disk(_))
                | OwnError::Journal(journal::Error::Disk(_)),
            ) => Ok(Presence::Present),
            restored => restored,
        }
    }

    /// Restores the lock, then the journal, then the definition.
    fn try_restore(&mut self, head: &Head, definition: &Definition) -> Result<Presence, OwnError> {
        let disk = Arc::clone(&self.project.disk);
        // The lock comes first: as soon as the journal exists again, another process could open it.
        if !self.lock.is_in_place()? {
            self.project.root.ensure(disk.as_ref())?;
            self.paths.ensure(disk.as_ref())?;
            self.lock = take_lock(&self.project, &self.paths, Takeover::Never)?;
        }
        let presence = self.journal.journal().restore()?;
        if presence == Presence::Restored {
            self.project.root.ballast(disk).fill().ok();
            // This process has the definition in memory. Without the blob only a later resume
            // fails, and it reports what is missing.
            Pin::restore(&head.run.manifest, definition, self.origin, &self.blobs).ok();
        }
        Ok(presence)
    }
}

/// Returns the key of a request that came through the inbox.
pub(super) fn request_key(input: &Input) -> Option<String> {
    match input {
        Input::Stop { key, .. } | Input::Answer { key, .. } | Input::CancelAgent { key, .. } => {
            Some(key.clone())
        }
        _ => None,
    }
}

fn request(bytes: &[u8], key: &str) -> Option<Input> {
    // On a full disk a request may be an empty file: its name says what is asked for.
    if bytes.is_empty() {
        return request_of_key(key);
    }
    // The key inside must match the name: the answer removes the file by its key.
    let input: Input = serde_json::from_slice(bytes).ok()?;
    (request_key(&input).as_deref() == Some(key)).then_some(input)
}
