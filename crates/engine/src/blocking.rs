//! Work that takes as long as its input wants, such as checking a value by the schema of somebody else.
//!
//! It is done on a thread of its own, so that everything else goes on: clocks, signals, other steps.
//! A thread cannot be ended; one that nobody waits for any more ends by itself, or with the process. So
//! there are only so many.

use std::panic;
use std::thread;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

/// How long anybody waits.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The message for [`Unfinished::NoThread`].
pub(crate) const NO_THREAD: &str = "could not start a thread; raise the limit with `ulimit -u`";

/// The work was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// RecordOnly wants it any more.
    Cancelled,
    /// It took more than [`TIME_LIMIT`].
    TimedOut,
    /// This process may not start another thread.
    NoThread,
}

/// How much of such work is done at a time, with what was given up and goes on.
static SLOTS: Semaphore = Semaphore::const_new(8);

/// Does the work, unless somebody cancels.
pub(crate) async fn run_with_limit<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
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
    let place = SLOTS.acquire().await;
    let (done, waits) = oneshot::channel();
    let worker = thread::Builder::new().spawn(move || {
        let _until_it_is_done = place;
        done.send(work()).ok();
    });
    let worker = worker.map_err(|_| Unfinished::NoThread)?;
    match waits.await {
        Ok(value) => Ok(value),
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
    async fn it_is_done_and_what_it_comes_to_is_told() {
        assert_eq!(run_with_limit(&CancellationToken::new(), || 7).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_it_longer_than_they_want_to() {
        let (_open, never) = mpsc::channel::<()>();
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert_eq!(run_with_limit(&cancel, || ()).await, Err(Unfinished::Cancelled));
        let waiting = run_with_limit(&CancellationToken::new(), move || never.recv().ok()).await;
        assert_eq!(waiting, Err(Unfinished::TimedOut));
    }

    #[tokio::test]
    #[should_panic(expected = "broken")]
    async fn what_breaks_there_breaks_here() {
        run_with_limit(&CancellationToken::new(), || panic!("broken")).await.ok();
    }
}
