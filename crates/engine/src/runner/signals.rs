//! The signals that an owner listens to, and whoever stands in for one.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// What a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`
    Terminate,
    /// The terminal is gone.
    HangUp,
    /// Somebody put something into the inbox.
    Wake,
}

/// All of them.
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    wake_owner: tokio::signal::unix::Signal,
}

impl Signals {
    /// Listens from now on, in the place of what they do by themselves.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            wake_owner: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hang_up.recv() => Signal::HangUp,
            _ = self.wake_owner.recv() => Signal::Wake,
        }
    }
}
