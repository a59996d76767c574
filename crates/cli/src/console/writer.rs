//! A thread that writes where nobody may read, and whoever waits for it to end.
//!
//! As long as something is taken there is all the time in the world. When nothing is, the thread is
//! left where it is, and ends with the process. If no thread can be started, everything is written at the end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a run that is over waits for somebody to take more of what is written.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(2);

/// The thread.
pub(super) struct Writer {
    end: Receiver<()>,
    progress: Progress,
    /// The work, until its thread takes it.
    work: Work,
}

type Write = Box<dyn FnOnce(&Progress) + Send>;
type Work = Arc<Mutex<Option<Write>>>;

fn take(work: &Work) -> Option<Write> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Counts what was taken.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<AtomicUsize>);

impl Progress {
    pub(super) fn make(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn so_far(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is done.
    Done,
    /// Nobody takes anything.
    Stuck,
}

impl Writer {
    pub(super) fn start(write: impl FnOnce(&Progress) + Send + 'static) -> Self {
        let (over, end) = sync_channel(1);
        let progress = Progress::default();
        let made = progress.clone();
        let work: Work = Arc::new(Mutex::new(Some(Box::new(write))));
        let waiting = Arc::clone(&work);
        let spawned = thread::Builder::new().spawn(move || {
            if let Some(write) = take(&waiting) {
                write(&made);
            }
            over.send(()).ok();
        });
        // A thread that was started takes the work itself.
        let work = if spawned.is_ok() { Work::default() } else { work };
        Self { end, progress, work }
    }

    /// Waits until it is done, or until nothing was taken for so long.
    pub(super) fn wait(self, patience: Duration) -> Fate {
        if let Some(write) = take(&self.work) {
            write(&self.progress);
        }
        let mut seen = self.progress.so_far();
        loop {
            match self.end.recv_timeout(patience) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return Fate::Done,
                Err(RecvTimeoutError::Timeout) if self.progress.so_far() == seen => {
                    return Fate::Stuck;
                }
                Err(RecvTimeoutError::Timeout) => seen = self.progress.so_far(),
            }
        }
    }
}
