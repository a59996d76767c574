//! What is said and printed when a run is over.
//!
//! The run listened for signals; from here on they end this process again, whoever does not take its
//! last words.

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::failure::Failure;

const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;

/// Lets somebody say the last words, and gives the exit code: theirs, or that of a signal.
pub(super) fn farewell(
    runtime: &Runtime,
    words: impl FnOnce() -> Result<u8, Failure> + Send + 'static,
) -> Result<u8, Failure> {
    let failed = |error| Failure::environment(format!("could not listen for signals: {error}"));
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let (told, said) = oneshot::channel();
        // Nobody waits for this thread: it may be stuck in a write.
        std::thread::spawn(move || told.send(words()).ok());
        tokio::select! {
            biased;
            code = said => code.unwrap_or_else(|_| {
                Err(Failure::environment("could not say how the run went"))
            }),
            _ = interrupt.recv() => Ok(INTERRUPTED),
            _ = terminate.recv() => Ok(TERMINATED),
        }
    })
}
