//! Clients that share a configuration start one after the other.
//!
//! Two that start at once write the same files. The way is free again when a client has said its
//! first word, has exited, or has had time enough.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The way that one client at a time can take.
#[derive(Debug, Clone)]
pub(super) struct StartGate(Arc<Semaphore>);

/// The gate, held by a client that starts. Dropped, it is free.
#[derive(Debug)]
pub(super) struct StartPermit {
    _permit: OwnedSemaphorePermit,
    /// When it is to be free again.
    pub(super) until: Instant,
}

impl StartGate {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    /// Waits until nobody else starts.
    pub(super) async fn pass(&self, time: Duration) -> Option<StartPermit> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        Some(StartPermit { _permit: permit, until: Instant::now() + time })
    }
}
