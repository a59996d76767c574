//! A thread that writes to a stream that may have no reader.
//!
//! The end of a command waits for the thread as long as the reader takes something. If the reader
//! takes nothing for a while, the command leaves the thread blocked, and it ends with the process.
//! If the thread cannot be started, everything is written at the end instead.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time without progress after which a finished run stops waiting for a reader. Two seconds bridge
/// a busy terminal or pager; they are not measured.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(2);

pub(super) struct Writer {
    end: Receiver<()>,
    progress: WriteProgress,
    /// The work, unless a thread has taken it.
    work: Work,
}

type Write = Box<dyn FnOnce(&WriteProgress) + Send>;
type Work = Arc<Mutex<Option<Write>>>;

fn take(work: &Work) -> Option<Write> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A counter of the writes that a reader has taken.
#[derive(Clone, Default)]
pub(super) struct WriteProgress(Arc<AtomicUsize>);

impl WriteProgress {
    pub(super) fn make(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn so_far(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The outcome of waiting for a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteFate {
    /// Everything is written.
    Done,
    /// The reader took nothing for the given time.
    Stuck,
}

impl Writer {
    pub(super) fn start(write: impl FnOnce(&WriteProgress) + Send + 'static) -> Self {
        let (over, end) = sync_channel(1);
        let progress = WriteProgress::default();
        let made = progress.clone();
        let work: Work = Arc::new(Mutex::new(Some(Box::new(write))));
        let waiting = Arc::clone(&work);
        let spawned = thread::Builder::new().spawn(move || {
            if let Some(write) = take(&waiting) {
                write(&made);
            }
            over.send(()).ok();
        });
        // Without a thread (`ulimit -u`) the work stays here, and `wait` does it.
        let work = if spawned.is_ok() { Work::default() } else { work };
        Self { end, progress, work }
    }

    /// Waits until everything is written, or until there was no progress for `patience`.
    pub(super) fn wait(self, patience: Duration) -> WriteFate {
        if let Some(write) = take(&self.work) {
            write(&self.progress);
        }
        let mut seen = self.progress.so_far();
        loop {
            match self.end.recv_timeout(patience) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return WriteFate::Done,
                Err(RecvTimeoutError::Timeout) if self.progress.so_far() == seen => {
                    return WriteFate::Stuck;
                }
                Err(RecvTimeoutError::Timeout) => seen = self.progress.so_far(),
            }
        }
    }
}
