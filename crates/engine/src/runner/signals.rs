//! The signals that the owner of a run handles.
//!
//! Also used by commands that hold a call open, such as the MCP server. The caller decides what a
//! signal does: see `Runner::handle_signal`.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`
    Terminate,
    /// The terminal was closed.
    HangUp,
    /// `SIGUSR1`: another process put a request into the inbox.
    Wake,
}

/// Listens for all signals of [`Signal`].
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    wake_owner: tokio::signal::unix::Signal,
}

impl Signals {
    /// Starts listening. From now on the signals no longer end this process.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            wake_owner: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hang_up.recv() => Signal::HangUp,
            _ = self.wake_owner.recv() => Signal::Wake,
        }
    }
}
