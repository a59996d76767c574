//! A client whose words go to a file, so that it outlives its owner.
//!
//! Nothing ties it to the process that started it: its stdin is complete before it
//! starts, its stdout is its transcript, and whoever owns the run next follows that file on. What is
//! heard is read by offset, with bounded memory. The end is the exit of the client itself, whatever
//! its children hold open.

mod adopted;
mod disk_reservation;
mod exit;
mod followed;
mod regular;
mod start;

use std::collections::VecDeque;
use std::future::ready;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

pub use adopted::{adopt, restarted_since, was_started};
pub(crate) use disk_reservation::cause;
pub use disk_reservation::{DISK_SPACE_NEEDED, is_untouched, release_reserved_space};
pub(super) use regular::open_to_read;
pub(crate) use regular::read_regular;
pub use start::{Files, StartError, start_client};
pub(super) use start::{append, private};

use disk_reservation::DiskReservations;
use exit::Exit;
pub(super) use followed::FollowedFile;
pub use followed::Unreadable;

use super::Grace;
use super::output::Tail;
use super::table::Identity;
use super::transcript::{CHUNK, Lines, TRANSCRIPT_MAX};
use super::tree::Tree;

/// A client that runs. Dropped before its end, its tree is killed; when its owner is killed, nothing
/// happens to it.
#[derive(Debug)]
pub struct Client {
    identity: Identity,
    exit: Exit,
    tree: Tree,
    life: ClientLife,
    /// Whether it may live on when this is dropped.
    may_outlive_owner: bool,
    stdout: FollowedFile,
    stderr: FollowedFile,
    reservations: DiskReservations,
    /// Whether it was told that there is no room.
    shortage: Shortage,
    chunk: Vec<u8>,
    lines: Lines,
    tail: Tail,
    flood: Flood,
    event: VecDeque<StreamEvent>,
    pause: Duration,
    /// The deadline that has passed, and what had been written by then.
    passed: Option<(Instant, Extent)>,
}

/// What is heard of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// A line of its stdout without its newline; the last one may have had none.
    Line(Vec<u8>),
    /// A line that was too long to keep.
    LongLine {
        /// Its length in bytes.
        length: u64,
    },
    /// It wrote to stderr.
    Stderr,
    /// It has written more than is put up with; told once.
    TooLarge {
        /// The limit in bytes, for stdout and stderr each.
        limit: u64,
    },
    /// This process did not run for that long, and could not look: clocks that were set before are
    /// to be moved. A machine that sleeps does not show here, because its clock stands still too.
    Suspended {
        /// How long.
        gap: Duration,
    },
    /// It has exited, and every line of it was heard. The status is known of own children only.
    Exited(Option<ExitStatus>),
    /// The deadline has passed, and all that was written by then was heard.
    Deadline,
    /// The client must be ended: its files cannot be read, or there is no room for what it writes.
    Unreadable {
        /// A sentence.
        why: String,
    },
}

#[derive(Debug)]
enum ClientLife {
    Running,
    /// What is written later is not by the client.
    Over {
        status: Option<ExitStatus>,
        /// None if it could not be found out at the exit.
        extent: Option<Extent>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flood {
    NotSeen,
    Reported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shortage {
    NotSeen,
    Reported,
}

/// How far both files go.
#[derive(Debug, Clone, Copy)]
struct Extent {
    stdout: u64,
    stderr: u64,
}

/// What a look at the files came to.
enum PollResult {
    Read,
    Nothing(AfterOutput),
}

/// What is to be done when all has been heard.
enum AfterOutput {
    Exited(Option<ExitStatus>),
    Deadline,
    Wait,
}

const MIN_POLL_PAUSE: Duration = Duration::from_millis(10);
const MAX_POLL_PAUSE: Duration = Duration::from_millis(200);

impl Client {
    fn new(
        exit: Exit,
        identity: Identity,
        tree: Tree,
        [stdout, stderr]: [FollowedFile; 2],
        reservations: DiskReservations,
    ) -> Self {
        Self {
            identity,
            exit,
            tree,
            life: ClientLife::Running,
            may_outlive_owner: false,
            stdout,
            stderr,
            reservations,
            shortage: Shortage::NotSeen,
            chunk: vec![0; CHUNK],
            lines: Lines::default(),
            tail: Tail::default(),
            flood: Flood::NotSeen,
            event: VecDeque::new(),
            pause: MIN_POLL_PAUSE,
            passed: None,
        }
    }

    /// Which process it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The end of what it wrote to stderr, as far as it was heard.
    pub fn stderr(&self) -> String {
        self.tail.text()
    }

    /// What happens next. Nothing is lost when the waiting is given up. After its exit, that is told
    /// again and again.
    pub async fn next(&mut self, deadline: Option<Instant>) -> StreamEvent {
        loop {
            if let Some(event) = self.event.pop_front() {
                return event;
            }
            self.notice_exit().await;
            let then = match self.poll_once(deadline) {
                Ok(PollResult::Read) => {
                    self.pause = MIN_POLL_PAUSE;
                    // One that never stops writing must not keep all others waiting.
                    tokio::task::consume_budget().await;
                    continue;
                }
                Ok(PollResult::Nothing(then)) => then,
                Err(why) => return StreamEvent::Unreadable { why },
            };
            match then {
                AfterOutput::Exited(status) => {
                    return self.lines.finish().unwrap_or(StreamEvent::Exited(status));
                }
                AfterOutput::Deadline => {
                    self.passed = None;
                    return StreamEvent::Deadline;
                }
                AfterOutput::Wait => {
                    if let Some(gap) = self.wait(deadline).await {
                        return StreamEvent::Suspended { gap };
                    }
                }
            }
        }
    }

    /// SIGINT, SIGTERM, SIGKILL for the whole tree, each with its patience. Returns those that are
    /// not dead. Lines that were written meanwhile are still heard afterwards.
    pub async fn end(&mut self, grace: &Grace) -> Vec<Identity> {
        let survivors = self.tree.end(grace).await;
        if !survivors.contains(&self.identity) {
            let status = match self.life {
                ClientLife::Running => self.exit.seen().await,
                ClientLife::Over { status, .. } => status,
            };
            self.note_exit(status);
        }
        survivors
    }

    /// Lets go of it without ending it: whoever owns the run next adopts it.
    pub fn keep_running(mut self) {
        self.may_outlive_owner = true;
    }

    /// One whose children never stop writing is never waited for.
    async fn notice_exit(&mut self) {
        if let ClientLife::Running = self.life {
            tokio::select! {
                biased;
                status = self.exit.seen() => self.note_exit(status),
                () = ready(()) => {}
            }
        }
    }

    /// Hears a piece of what has been written, and keeps room for more. An error is a sentence.
    fn poll_once(&mut self, deadline: Option<Instant>) -> Result<PollResult, String> {
        let unreadable = |error: Unreadable| error.to_string();
        let (extent, then) = self.output_to_read(deadline).map_err(unreadable)?;
        if self.read_output(extent).map_err(unreadable)? {
            return Ok(PollResult::Read);
        }
        self.keep_space_reserved(extent)?;
        Ok(PollResult::Nothing(then))
    }

    /// A shortage is told once: the client is ended then, and its last words fit into the reserve.
    fn keep_space_reserved(&mut self, extent: Extent) -> Result<(), String> {
        match (&self.life, self.shortage) {
            (ClientLife::Running, Shortage::NotSeen) => {}
            (ClientLife::Running, Shortage::Reported) | (ClientLife::Over { .. }, _) => {
                return Ok(());
            }
        }
        let Extent { stdout, stderr } = extent;
        self.reservations
            .keep_ahead(stdout, stderr)
            .inspect_err(|_| self.shortage = Shortage::Reported)
    }

    /// Why another client could not write either, if the machine is to blame.
    pub fn find_disk_shortage(&mut self) -> Option<String> {
        self.reservations.check().err()
    }

    /// Releases the space that was reserved for what is not written any more.
    pub fn release_reserved_space(&mut self) {
        self.reservations.release();
    }

    /// How far is to be heard, and what comes then. Once a clock has run out or the client has
    /// exited, what is written later must not put that off.
    fn output_to_read(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<(Extent, AfterOutput), Unreadable> {
        if let ClientLife::Over { status, extent } = self.life {
            let extent = match extent {
                Some(extent) => extent,
                None => self.extent()?,
            };
            return Ok((extent, AfterOutput::Exited(status)));
        }
        let passed = deadline.filter(|at| *at <= Instant::now());
        let Some(deadline) = passed else {
            return Ok((self.extent()?, AfterOutput::Wait));
        };
        let extent = match self.passed {
            Some((at, extent)) if at == deadline => extent,
            _ => self.extent()?,
        };
        self.passed = Some((deadline, extent));
        Ok((extent, AfterOutput::Deadline))
    }

    fn extent(&mut self) -> Result<Extent, Unreadable> {
        // In this order, what is said on stdout before anything on stderr is heard before it.
        let stderr = self.stderr.length()?;
        Ok(Extent { stdout: self.stdout.length()?, stderr })
    }

    /// Hears a piece of what has been written; says whether there was any.
    fn read_output(&mut self, extent: Extent) -> Result<bool, Unreadable> {
        let event = &mut self.event;
        if self.flood == Flood::NotSeen && extent.stdout.max(extent.stderr) > TRANSCRIPT_MAX {
            self.flood = Flood::Reported;
            event.push_back(StreamEvent::TooLarge { limit: TRANSCRIPT_MAX });
        }
        let piece = self.stdout.read(extent.stdout, &mut self.chunk)?;
        self.lines.push(piece, &mut |line| event.push_back(line));
        let spoke = !piece.is_empty();
        self.stderr.skip_to_last(extent.stderr, self.tail.length() as u64);
        let piece = self.stderr.read(extent.stderr, &mut self.chunk)?;
        if !piece.is_empty() {
            self.tail.push(piece);
            event.push_back(StreamEvent::Stderr);
        }
        Ok(spoke || !event.is_empty())
    }

    /// Waits until it is time for another look. Returns how much later than that it is, if notably.
    async fn wait(&mut self, deadline: Option<Instant>) -> Option<Duration> {
        let look = Instant::now() + self.pause;
        let asked = deadline.map_or(look, |deadline| deadline.min(look));
        self.pause = (self.pause * 2).min(MAX_POLL_PAUSE);
        tokio::select! {
            biased;
            status = self.exit.seen() => self.note_exit(status),
            () = sleep_until(asked) => {}
        }
        suspended_for(asked, Instant::now())
    }

    fn note_exit(&mut self, status: Option<ExitStatus>) {
        self.tree.note_leader_reaped();
        self.life = ClientLife::Over { status, extent: self.extent().ok() };
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        match self.life {
            ClientLife::Running if !self.may_outlive_owner => self.tree.kill_now(),
            ClientLife::Running | ClientLife::Over { .. } => {}
        }
    }
}

/// By how much something came late, when a busy machine does not explain it.
fn suspended_for(asked: Instant, came: Instant) -> Option<Duration> {
    const USUAL: Duration = Duration::from_secs(5);
    let gap = came.saturating_duration_since(asked);
    (gap > USUAL).then_some(gap)
}

#[cfg(test)]
mod tests;
