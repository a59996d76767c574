//! The runs that this process drives at the same time.
//!
//! Whoever is the only one may end everything below the process when its run is over, even a daemon
//! that says nowhere whose it is. Beside others, it ends only what carries a marker of its run.

use std::sync::atomic::{AtomicUsize, Ordering};

use raymond_backends::process::{Grace, end_orphans, leftovers, reap_orphans};
use raymond_core::ids::Nonce;
use tokio::sync::Semaphore;

/// Held while somebody moves in, and while everything below the process is ended.
static REGISTRATION: Semaphore = Semaphore::const_new(1);
static ACTIVE_RUNS: AtomicUsize = AtomicUsize::new(0);

/// A run that is driven; it moves out when it is dropped.
pub(super) struct ActiveRun(());

impl ActiveRun {
    pub(super) async fn register() -> Self {
        let _door = REGISTRATION.acquire().await;
        ACTIVE_RUNS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Nothing of its run is left running.
    pub(super) async fn end_processes(&self, nonce: &Nonce, grace: &Grace) {
        let _door = REGISTRATION.acquire().await;
        if ACTIVE_RUNS.load(Ordering::SeqCst) == 1 {
            end_orphans(nonce, grace).await;
        } else {
            leftovers::end(&leftovers::find(nonce), grace).await;
            reap_orphans();
        }
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        ACTIVE_RUNS.fetch_sub(1, Ordering::SeqCst);
    }
}
