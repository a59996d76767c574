//! A gate that lets clients with a shared configuration start one after the other.
//!
//! Two clients that start at the same time write the same files. The gate opens again when the
//! client has written its first output, has exited, or has used up its time for starting.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The gate that one client at a time can pass.
#[derive(Debug, Clone)]
pub(super) struct StartGate(Arc<Semaphore>);

/// The permit of a starting client. Dropping it opens the gate.
#[derive(Debug)]
pub(super) struct StartPermit {
    _permit: OwnedSemaphorePermit,
    /// When the permit expires.
    pub(super) until: Instant,
}

impl StartGate {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    /// Waits until no other client is starting.
    pub(super) async fn pass(&self, time: Duration) -> Option<StartPermit> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        Some(StartPermit { _permit: permit, until: Instant::now() + time })
    }
}
