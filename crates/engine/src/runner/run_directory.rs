//! The directory of a run as its owner keeps it: requests come in, the state file goes out, and what
//! vanished is put back.

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
use crate::owned::{OwnError, take_lock};
use crate::pin::Pin;
use crate::project::Project;
use crate::request::request_of_key;
use crate::scope::Origin;
use crate::{snapshot, statefile};

/// The journal, shared with the beat that looks whether it is still where it belongs.
#[derive(Debug, Clone)]
pub(super) struct SharedJournal(Arc<Mutex<Journal>>);

impl SharedJournal {
    pub(super) fn new(journal: Journal) -> Self {
        Self(Arc::new(Mutex::new(journal)))
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for SharedJournal {
    fn append(&mut self, body: &[u8]) -> Result<(), journal::Error> {
        Log::append(&mut *self.journal(), body)
    }
}

/// What of an owned run the driver does not need.
pub(super) struct RunDirectory {
    pub(super) project: Project,
    pub(super) paths: RunPaths,
    pub(super) journal: SharedJournal,
    pub(super) blobs: Arc<Blobs>,
    pub(super) origin: Origin,
    /// Given back last.
    pub(super) lock: Lock,
    pub(super) written_state: WrittenState,
    /// The record that the last snapshot reflects.
    pub(super) snapshot_seq: u64,
    pub(super) ignored: BTreeSet<String>,
}

/// When the state file was written, and what it said.
#[derive(Debug, Default)]
pub(super) struct WrittenState {
    written: Option<(Instant, Status)>,
    is_stale: bool,
}

/// What the inbox held.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) inputs: Vec<Input>,
    /// What is worth a line: files that are no requests.
    pub(super) notes: Vec<String>,
}

impl RunDirectory {
    /// The requests in the inbox; whatever is none is named once and stops nobody.
    pub(super) fn requests(&mut self) -> Requests {
        let mut requests = Requests::default();
        let Ok(taken) = self.inbox().take_all() else { return requests };
        let mut ignored: Vec<(String, String)> = taken
            .garbage
            .into_iter()
            .map(|garbage| (garbage.name, garbage.why.to_string()))
            .collect();
        for message in taken.messages {
            match request(&message.bytes, &message.key) {
                Some(input) => requests.inputs.push(input),
                None => ignored.push((
                    format!("{}.json", message.key),
                    "it asks for nothing known".to_owned(),
                )),
            }
        }
        for (name, why) in ignored {
            if self.ignored.insert(name.clone()) {
                requests.notes.push(format!("ignored {name} in the inbox: {why}"));
            }
        }
        requests
    }

    /// A request was committed or refused: either way it has been answered.
    pub(super) fn remove_request(&self, key: &str) {
        self.inbox().remove(key).ok();
    }

    fn inbox(&self) -> Inbox {
        Inbox::new(Arc::clone(&self.project.disk), self.paths.inbox.clone())
    }

    /// Writes the state file when the status changed, and otherwise at most once a second.
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

    /// Writes the state file if it is behind.
    pub(super) fn write_stale_state(&mut self, head: &Head, status: Status) {
        if self.written_state.is_stale {
            self.write_state(head, status);
        }
    }

    /// Writes the state file.
    pub(super) fn write_state(&mut self, head: &Head, status: Status) {
        // It is derived: one that could not be written now is written a second later.
        let disk = self.project.disk.as_ref();
        let failed = statefile::write(disk, &self.paths.state, head, status).is_err();
        self.written_state =
            WrittenState { written: Some((Instant::now(), status)), is_stale: failed };
    }

    /// Keeps the head of a long run, so that whoever opens or looks at it need not fold all of it.
    pub(super) fn save_snapshot(&mut self, head: &Head) {
        if head.seq >= self.snapshot_seq + snapshot::MIN_RECORDS {
            let sum = self.journal.journal().sum();
            snapshot::save(head, sum, self.project.disk.as_ref(), &self.paths.snapshot).ok();
            self.snapshot_seq = head.seq;
        }
    }

    /// Puts back what vanished under the living run. What the disk refuses is tried again later; a
    /// run that somebody else took, or replaced, is given up.
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

    /// The lock comes first: before there is a journal again, nobody else may own the run.
    fn try_restore(&mut self, head: &Head, definition: &Definition) -> Result<Presence, OwnError> {
        let disk = Arc::clone(&self.project.disk);
        if !self.lock.is_in_place()? {
            self.project.root.ensure(disk.as_ref())?;
            self.paths.ensure(disk.as_ref())?;
            self.lock = take_lock(&self.project, &self.paths, Takeover::Never)?;
        }
        let presence = self.journal.journal().restore()?;
        if presence == Presence::Restored {
            self.project.root.ballast(disk).fill().ok();
            // The run goes on without; a resume would say what it misses.
            Pin::restore(&head.run.manifest, definition, self.origin, &self.blobs).ok();
        }
        Ok(presence)
    }
}

/// The key of a request that came through the inbox.
pub(super) fn request_key(input: &Input) -> Option<String> {
    match input {
        Input::Stop { key, .. } | Input::Answer { key, .. } => Some(key.clone()),
        _ => None,
    }
}

fn request(bytes: &[u8], key: &str) -> Option<Input> {
    if bytes.is_empty() {
        return request_of_key(key);
    }
    let input: Input = serde_json::from_slice(bytes).ok()?;
    (request_key(&input).as_deref() == Some(key)).then_some(input)
}
