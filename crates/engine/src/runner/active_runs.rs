//! The number of runs that this process drives at the same time.
//!
//! When a run ends, its processes must end too. If it is the only run of this process, every child
//! process belongs to it, even a daemon that removed the marker from its environment. If other runs
//! are active, only processes that carry a marker of this run may be ended.

use std::sync::atomic::{AtomicUsize, Ordering};

use raymond_backends::process::{Grace, end_orphans, leftovers, reap_orphans};
use raymond_core::ids::Nonce;
use tokio::sync::Semaphore;

/// Held while a run registers and while processes are ended: a run that registers in between would
/// have its first processes ended by the other run.
static REGISTRATION: Semaphore = Semaphore::const_new(1);
static ACTIVE_RUNS: AtomicUsize = AtomicUsize::new(0);

/// A registered run. Dropping it removes the registration.
pub(super) struct ActiveRun(());

impl ActiveRun {
    pub(super) async fn register() -> Self {
        let _one_at_a_time = REGISTRATION.acquire().await;
        ACTIVE_RUNS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Ends every process of the run with this nonce.
    pub(super) async fn end_processes(&self, nonce: &Nonce, grace: &Grace) {
        let _one_at_a_time = REGISTRATION.acquire().await;
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
