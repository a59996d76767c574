//! Waiting for the exit of a client: own children are waited for, adopted clients are polled.

use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::time::sleep;

use crate::process::child::Child;

#[derive(Debug)]
pub(super) enum Exit {
    Child(Child),
    /// A descriptor that becomes readable when the process exits.
    Adopted(OwnedFd),
}

impl Exit {
    /// Waits for the exit. The status is unknown for an adopted client, and for a child whose
    /// status was taken elsewhere.
    pub(super) async fn seen(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Child(child) => child.wait().await.ok(),
            Self::Adopted(descriptor) => {
                // Adopted clients are few, and the runtime has no safe way to wait for a foreign
                // descriptor.
                const PAUSE: Duration = Duration::from_millis(50);
                while !is_readable(descriptor) {
                    sleep(PAUSE).await;
                }
                None
            }
        }
    }
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut descriptors, Some(&at_once)).is_ok_and(|ready| ready > 0)
}
