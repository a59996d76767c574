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

use super::BEAT;
use crate::driver::{Head, Log};
use crate::owned::{OwnError, take};
use crate::pin::Pin;
use crate::project::Project;
use crate::request::asked_by;
use crate::scope::Origin;
use crate::{snapshot, statefile};

/// The journal, shared with the beat that looks whether it is still where it belongs.
#[derive(Debug, Clone)]
pub(super) struct Pen(Arc<Mutex<Journal>>);

impl Pen {
    pub(super) fn new(journal: Journal) -> Self {
        Self(Arc::new(Mutex::new(journal)))
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for Pen {
    fn append(&mut self, body: &[u8]) -> Result<(), journal::Error> {
        Log::append(&mut *self.journal(), body)
    }
}

/// What of an owned run the driver does not need.
pub(super) struct Home {
    pub(super) project: Project,
    pub(super) paths: RunPaths,
    pub(super) journal: Pen,
    pub(super) blobs: Arc<Blobs>,
    pub(super) origin: Origin,
    /// Given back last.
    pub(super) lock: Lock,
    pub(super) mirror: Mirror,
    /// The record that the last snapshot reflects.
    pub(super) kept: u64,
    pub(super) ignored: BTreeSet<String>,
}

/// When the state file was written, and what it said.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    written: Option<(Instant, Status)>,
    stale: bool,
}

/// What the inbox held.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) inputs: Vec<Input>,
    /// What is worth a line: files that are no requests.
    pub(super) notes: Vec<String>,
}

impl Home {
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
    pub(super) fn answered(&self, key: &str) {
        self.inbox().remove(key).ok();
    }

    fn inbox(&self) -> Inbox {
        Inbox::new(Arc::clone(&self.project.disk), self.paths.inbox.clone())
    }

    /// Writes the state file when the status changed, and otherwise at most once a second.
    pub(super) fn mirror(&mut self, head: &Head, status: Status) {
        let due =
            self.mirror.written.is_none_or(|(at, said)| said != status || at.elapsed() >= BEAT);
        if due {
            self.write_state(head, status);
        } else {
            self.mirror.stale = true;
        }
    }

    /// Writes the state file if it is behind.
    pub(super) fn catch_up(&mut self, head: &Head, status: Status) {
        if self.mirror.stale {
            self.write_state(head, status);
        }
    }

    /// Writes the state file.
    pub(super) fn write_state(&mut self, head: &Head, status: Status) {
        // It is derived: one that could not be written now is written a second later.
        let disk = self.project.disk.as_ref();
        let failed = statefile::write(disk, &self.paths.state, head, status).is_err();
        self.mirror = Mirror { written: Some((Instant::now(), status)), stale: failed };
    }

    /// Keeps the head of a long run, so that whoever opens or looks at it need not fold all of it.
    pub(super) fn keep_head(&mut self, head: &Head) {
        if head.seq >= self.kept + snapshot::WORTH_IT {
            let sum = self.journal.journal().sum();
            snapshot::save(head, sum, self.project.disk.as_ref(), &self.paths.snapshot).ok();
            self.kept = head.seq;
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
            self.lock = take(&self.project, &self.paths, Takeover::Never)?;
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
        return asked_by(key);
    }
    let input: Input = serde_json::from_slice(bytes).ok()?;
    (request_key(&input).as_deref() == Some(key)).then_some(input)
}
