//! What is said and printed when a run is over.
//!
//! The run listened for signals; from here on they end this process again, whoever does not take its
//! last words.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::failure::Failure;

const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;

/// Lets somebody say the last words, and gives the exit code: theirs, or that of a signal.
pub(super) fn finish(
    runtime: &Runtime,
    words: impl FnOnce() -> Result<u8, Failure> + Send + 'static,
) -> Result<u8, Failure> {
    let failed = |error| Failure::environment(format!("could not listen for signals: {error}"));
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let (told, said) = oneshot::channel();
        // Nobody waits for this thread: it may be stuck in a write.
        let words = Arc::new(Mutex::new(Some(words)));
        let last = Arc::clone(&words);
        let spawned = thread::Builder::new().spawn(move || {
            if let Some(words) = take(&last) {
                told.send(words()).ok();
            }
        });
        // Without a thread, a signal cannot cut the words short.
        if spawned.is_err()
            && let Some(words) = take(&words)
        {
            return words();
        }
        tokio::select! {
            biased;
            code = said => code.unwrap_or_else(|_| {
                Err(Failure::environment("could not report the result of the run"))
            }),
            _ = interrupt.recv() => Ok(INTERRUPTED),
            _ = terminate.recv() => Ok(TERMINATED),
        }
    })
}

fn take<T>(held: &Mutex<Option<T>>) -> Option<T> {
    held.lock().unwrap_or_else(PoisonError::into_inner).take()
}
