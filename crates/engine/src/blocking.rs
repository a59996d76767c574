//! Runs possibly slow checks of untrusted input on a separate thread with a time limit.
//!
//! A JSON Schema with an expensive pattern can take minutes. The check must not block the runner:
//! signals, timers and other steps continue meanwhile. A thread cannot be killed, so a check that
//! exceeds the limit continues in the background until it ends or the process exits. The number of
//! such threads is limited for this reason.

use std::panic;
use std::thread;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

/// The longest wait for a check. Real schemas take milliseconds; a check that needs half a minute
/// is an attack or a mistake in a pattern.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The message for [`Unfinished::NoThread`].
pub(crate) const NO_THREAD: &str = "could not start a thread; raise the limit with `ulimit -u`";

/// Why the work has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// The caller cancelled.
    Cancelled,
    /// The work took longer than [`TIME_LIMIT`].
    TimedOut,
    /// This process may not start another thread.
    NoThread,
}

/// The most threads at the same time, including those that exceeded the limit and still run. Eight
/// slow checks may occupy eight cores, but never more.
static SLOTS: Semaphore = Semaphore::const_new(8);

/// Returns the message for a value whose check took too long.
pub(crate) fn too_slow_message() -> String {
    format!("checking it against its schema takes more than {} s", TIME_LIMIT.as_secs())
}

/// Runs the work on a separate thread, until it is done, cancelled or too slow.
pub(crate) async fn run_with_limit<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
    // Biased: a cancelled caller must not start a thread.
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Unfinished::Cancelled),
        done = run_on_thread(work) => done,
        () = tokio::time::sleep(TIME_LIMIT) => Err(Unfinished::TimedOut),
    }
}

async fn run_on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
    let slot = SLOTS.acquire().await;
    let (done, waits) = oneshot::channel();
    let worker = thread::Builder::new().spawn(move || {
        // The slot belongs to the thread, not to the caller: after the time limit the thread still
        // occupies it.
        let _slot_until_done = slot;
        done.send(work()).ok();
    });
    let worker = worker.map_err(|_| Unfinished::NoThread)?;
    match waits.await {
        Ok(value) => Ok(value),
        // The sender was dropped without a value: the work panicked. The panic continues here.
        Err(_) => match worker.join() {
            Err(panic) => panic::resume_unwind(panic),
            Ok(()) => Err(Unfinished::Cancelled),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn finished_work_returns_its_value() {
        assert_eq!(run_with_limit(&CancellationToken::new(), || 7).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_on_cancel_or_time_limit() {
        let (_open, never) = mpsc::channel::<()>();
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert_eq!(run_with_limit(&cancel, || ()).await, Err(Unfinished::Cancelled));
        let waiting = run_with_limit(&CancellationToken::new(), move || never.recv().ok()).await;
        assert_eq!(waiting, Err(Unfinished::TimedOut));
    }

    #[tokio::test]
    #[should_panic(expected = "broken")]
    async fn panic_of_the_work_reaches_the_caller() {
        run_with_limit(&CancellationToken::new(), || panic!("broken")).await.ok();
    }
}
