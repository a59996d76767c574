//! The runs that this process drives at the same time.
//!
//! Whoever is the only one may end everything below the process when its run is over, even a daemon
//! that says nowhere whose it is. Beside others, it ends only what carries a marker of its run.

use std::sync::atomic::{AtomicUsize, Ordering};

use raymond_backends::process::{Grace, end_orphans, leftovers, reap_orphans};
use raymond_core::ids::Nonce;
use tokio::sync::Semaphore;

/// Held while somebody moves in, and while everything below the process is ended.
static DOOR: Semaphore = Semaphore::const_new(1);
static TENANTS: AtomicUsize = AtomicUsize::new(0);

/// A run that is driven; it moves out when it is dropped.
pub(super) struct Tenant(());

impl Tenant {
    pub(super) async fn moves_in() -> Self {
        let _door = DOOR.acquire().await;
        TENANTS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Nothing of its run is left running.
    pub(super) async fn clears_up(&self, nonce: &Nonce, grace: &Grace) {
        let _door = DOOR.acquire().await;
        if TENANTS.load(Ordering::SeqCst) == 1 {
            end_orphans(nonce, grace).await;
        } else {
            leftovers::end(&leftovers::find(nonce), grace).await;
            reap_orphans();
        }
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        TENANTS.fetch_sub(1, Ordering::SeqCst);
    }
}
