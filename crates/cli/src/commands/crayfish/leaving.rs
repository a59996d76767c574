//! Whether anybody still waits for the reply of a call.
//!
//! A call is given up by a signal, by a reader of stdout that went away, and by a parent that died:
//! then the running step is ended, because nobody would ever read what it does. A reply into a file
//! is waited for by whoever reads the file.

use std::io::stdout;
use std::os::fd::AsFd;
use std::time::Duration;

use raymond_engine::runner::{Signal, Signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::process::getppid;

/// How often it is looked whether somebody is there.
const BEAT: Duration = Duration::from_millis(200);

/// Returns when nobody waits any more.
pub(super) async fn given_up(mut signals: Signals) {
    tokio::select! {
        () = signalled(&mut signals) => {}
        () = left_alone() => {}
    }
}

async fn signalled(signals: &mut Signals) {
    loop {
        match signals.next().await {
            Signal::Interrupt | Signal::Terminate | Signal::HangUp => return,
            // Only an owner has an inbox.
            Signal::Wake => {}
        }
    }
}

/// Returns when whoever reads stdout went away, or whoever started this process died.
async fn left_alone() {
    let stdout = stdout();
    if fstat(&stdout).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file()) {
        return std::future::pending().await;
    }
    let parent = getppid();
    let mut beat = tokio::time::interval(BEAT);
    loop {
        beat.tick().await;
        if getppid() != parent || is_closed(&stdout) {
            return;
        }
    }
}

/// Whether nobody can read what is written any more.
fn is_closed(stream: &impl AsFd) -> bool {
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
    fn a_pipe_is_closed_when_its_reader_is_gone() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(!is_closed(&writer));
        drop(reader);
        assert!(is_closed(&writer));
    }

    #[test]
    fn a_socket_is_closed_when_its_peer_is_gone() {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(!is_closed(&one));
        drop(other);
        assert!(is_closed(&one));
    }
}
