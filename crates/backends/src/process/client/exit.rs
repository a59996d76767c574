//! How the exit of a client is seen: a child is waited for, any other process is watched.

use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::time::sleep;

use crate::process::child::Child;

#[derive(Debug)]
pub(super) enum Exit {
    Child(Child),
    /// A descriptor that becomes readable with the exit.
    Adopted(OwnedFd),
}

impl Exit {
    /// Waits for the exit. The status is unknown of a stranger, and of a child that somebody else
    /// has waited for.
    pub(super) async fn seen(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Child(child) => child.wait().await.ok(),
            Self::Adopted(descriptor) => {
                // Strangers are few, and the runtime has no safe way to wait for a descriptor.
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
