//! Prints the end of a run: summary and result.
//!
//! The run handled signals itself. While the end is printed, signals end the process again, because
//! a stuck reader of stdout must not make the process unkillable.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::failure::Failure;

// 128 and the number of the signal, as shells report it: SIGINT is 2, SIGTERM is 15.
const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;

/// Prints the end of a run, and returns its exit code, or the exit code of a signal that arrives
/// first.
pub(super) fn finish(
    runtime: &Runtime,
    words: impl FnOnce() -> Result<u8, Failure> + Send + 'static,
) -> Result<u8, Failure> {
    let failed = |error| Failure::environment(format!("could not listen for signals: {error}"));
    runtime.block_on(async {
        // Registered before the output starts, so that no signal falls between the run and its end.
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let (sender, receiver) = oneshot::channel();
        // This thread is never joined, because it may be stuck in a write.
        // A failed `spawn` drops its closure, so the work is shared and can still be taken back
        // below.
        let words = Arc::new(Mutex::new(Some(words)));
        let last = Arc::clone(&words);
        let spawned = thread::Builder::new().spawn(move || {
            if let Some(words) = take(&last) {
                sender.send(words()).ok();
            }
        });
        // Without a second thread (`ulimit -u`), a signal cannot interrupt the output.
        if spawned.is_err()
            && let Some(words) = take(&words)
        {
            return words();
        }
        tokio::select! {
            biased;
            code = receiver => code.unwrap_or_else(|_| {
                Err(Failure::environment("could not report the result of the run"))
            }),
            // A finished output wins (biased): its exit code is the truth about the run.
            _ = interrupt.recv() => Ok(INTERRUPTED),
            _ = terminate.recv() => Ok(TERMINATED),
        }
    })
}

fn take<T>(held: &Mutex<Option<T>>) -> Option<T> {
    held.lock().unwrap_or_else(PoisonError::into_inner).take()
}
