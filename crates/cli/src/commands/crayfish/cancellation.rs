//! Detects that no process waits for the reply of a call any more.
//!
//! A call is cancelled by a signal, by a reader of stdout that closed it, or by a parent that died.
//! Then the running step ends, because no process would read its result. If stdout is a file, only
//! a signal cancels the call, because the caller may read the file later.

use std::io::stdout;
use std::os::fd::AsFd;
use std::time::Duration;

use raymond_engine::runner::{Signal, Signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::process::getppid;

/// Pause between two checks: the caller of a cancelled call does not wait for it, so this need not
/// be fast.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Returns when the call is cancelled.
pub(super) async fn cancelled_by_caller(mut signals: Signals) {
    tokio::select! {
        () = stop_signal(&mut signals) => {}
        () = caller_gone() => {}
    }
}

async fn stop_signal(signals: &mut Signals) {
    loop {
        match signals.next().await {
            Signal::Interrupt | Signal::Terminate | Signal::HangUp => return,
            // A poke announces a request in the inbox of a run, and only an owner has one.
            Signal::Wake => {}
        }
    }
}

/// Returns when the reader of stdout closed it, or the parent process died.
async fn caller_gone() {
    let stdout = stdout();
    // A file has no reader that could leave.
    if fstat(&stdout).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file()) {
        return std::future::pending().await;
    }
    let parent = getppid();
    let mut beat = tokio::time::interval(POLL_INTERVAL);
    loop {
        beat.tick().await;
        // A dead parent is replaced by another process, so the number of the parent changes.
        if getppid() != parent || is_closed(&stdout) {
            return;
        }
    }
}

/// Whether the other end of a pipe or socket is closed.
fn is_closed(stream: &impl AsFd) -> bool {
    // No event is requested, because `poll` always reports errors and hang-ups.
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
        && polled[0].revents().intersects(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_without_reader_is_closed() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(!is_closed(&writer));
        drop(reader);
        assert!(is_closed(&writer));
    }

    #[test]
    fn socket_without_peer_is_closed() {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(!is_closed(&one));
        drop(other);
        assert!(is_closed(&one));
    }
}
