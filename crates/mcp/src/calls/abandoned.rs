//! The running calls of each run, so that a call can wait for the end of a cancelled one.
//!
//! A client that has waited too long cancels its call and repeats it. The cancelled call ends its
//! programs before it leaves the run, so the repeated call would be refused as a second one. A call
//! whose client still waits is not waited for: the run is then in use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

#[derive(Clone, Default)]
pub(super) struct RunCalls(Arc<Mutex<Vec<Entry>>>);

struct Entry {
    run: String,
    /// One of them is cancelled if the client gave up.
    given_up: [CancellationToken; 2],
    ended: CancellationToken,
}

/// The place of a call in the list, until its thread ends.
pub(super) struct RunCall {
    calls: RunCalls,
    ended: CancellationToken,
}

impl Drop for RunCall {
    fn drop(&mut self) {
        self.ended.cancel();
        self.calls.lock().retain(|entry| !entry.ended.is_cancelled());
    }
}

impl RunCalls {
    /// Adds a call.
    pub(super) fn enter(&self, run: String, given_up: [CancellationToken; 2]) -> RunCall {
        let ended = CancellationToken::new();
        self.lock().push(Entry { run, given_up, ended: ended.clone() });
        RunCall { calls: self.clone(), ended }
    }

    /// Waits until no cancelled call works on the run.
    pub(super) async fn no_abandoned(&self, run: &str, cancel: &CancellationToken) {
        while let Some(ended) = self.abandoned(run) {
            tokio::select! {
                () = ended.cancelled() => {}
                () = cancel.cancelled() => return,
            }
        }
    }

    /// The end of a cancelled call on the run.
    fn abandoned(&self, run: &str) -> Option<CancellationToken> {
        let entries = self.lock();
        let is_abandoned = |entry: &&Entry| {
            entry.run == run && entry.given_up.iter().any(CancellationToken::is_cancelled)
        };
        entries.iter().find(is_abandoned).map(|entry| entry.ended.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
