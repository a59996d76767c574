//! A client that writes to files, so that it outlives its owner.
//!
//! Nothing ties the client to the process that started it. Its stdin is complete before it starts,
//! its stdout is the transcript of the turn, and the next owner of the run continues to read that
//! file. Raymond reads by offset and with bounded memory. The end is the exit of the client itself,
//! even if its children keep files open.
//!
//! See `headless::follow` for the loop that uses this module.

mod adopted;
mod disk_reservation;
mod exit;
mod identity_file;
mod start;

use std::collections::VecDeque;
use std::future::ready;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

pub use adopted::{adopt, restarted_since, was_started};
pub use disk_reservation::{DISK_SPACE_NEEDED, is_untouched, release_reserved_space};
pub use start::{StartError, start_client};

use disk_reservation::DiskReservations;
use exit::Exit;

use super::Grace;
use super::followed::{FollowedFile, UnreadableFile};
use super::output::OutputTail;
use super::stream_event::StreamEvent;
use super::table::Identity;
use super::transcript::{CHUNK, Lines, TRANSCRIPT_MAX};
use super::tree::Tree;

/// A running client. Dropping it kills its process tree. If the owner is killed, the client keeps
/// running.
#[derive(Debug)]
pub struct Client {
    identity: Identity,
    exit: Exit,
    tree: Tree,
    life: ClientLife,
    /// Whether the client keeps running when this handle is dropped.
    may_outlive_owner: bool,
    stdout: FollowedFile,
    stderr: FollowedFile,
    reservations: DiskReservations,
    /// Whether a lack of disk space was reported.
    shortage: Shortage,
    chunk: Vec<u8>,
    lines: Lines,
    tail: OutputTail,
    flood: Flood,
    events: VecDeque<StreamEvent>,
    pause: Duration,
    /// The deadline that has passed, and the length of the files at that time.
    passed: Option<(Instant, Extent)>,
}

#[derive(Debug)]
enum ClientLife {
    Running,
    /// The client has exited; later output comes from other processes.
    Over {
        status: Option<ExitStatus>,
        /// The lengths at the exit, or `None` if they could not be read.
        extent: Option<Extent>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// Reported at most once, because the follower ends the client then.
enum Flood {
    NotSeen,
    Reported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// Reported at most once, because the follower ends the client then.
enum Shortage {
    NotSeen,
    Reported,
}

/// The lengths of both files, in bytes.
#[derive(Debug, Clone, Copy)]
struct Extent {
    stdout: u64,
    stderr: u64,
}

/// The result of one read of the files.
enum PollResult {
    Read,
    Nothing(AfterOutput),
}

/// The reason why nothing was left to read.
enum AfterOutput {
    Exited(Option<ExitStatus>),
    Deadline,
    Wait,
}

// The pauses between two polls of the files: the pause starts at the minimum and doubles while the
// client writes nothing.
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
            tail: OutputTail::default(),
            flood: Flood::NotSeen,
            events: VecDeque::new(),
            pause: MIN_POLL_PAUSE,
            passed: None,
        }
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the end of stderr, as far as it was read.
    pub fn stderr(&self) -> String {
        self.tail.text()
    }

    /// Waits for the next event. Cancelling the wait loses nothing. After the exit, every call
    /// returns the exit.
    pub async fn next(&mut self, deadline: Option<Instant>) -> StreamEvent {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            self.notice_exit().await;
            let then = match self.poll_once(deadline) {
                Ok(PollResult::Read) => {
                    self.pause = MIN_POLL_PAUSE;
                    // A client that writes without a pause must not block other tasks of this
                    // thread.
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

    /// Ends the whole tree with SIGINT, SIGTERM and SIGKILL, each with its waiting time. Returns
    /// the processes that did not end. Lines that were written meanwhile can still be read
    /// afterwards.
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

    /// Releases the handle without ending the client, so that the next owner can adopt it.
    pub fn keep_running(mut self) {
        self.may_outlive_owner = true;
    }

    /// Notes an exit without waiting.
    async fn notice_exit(&mut self) {
        // Children may write forever, so the end of output is not a sign of the exit.
        if let ClientLife::Running = self.life {
            tokio::select! {
                biased;
                status = self.exit.seen() => self.note_exit(status),
                () = ready(()) => {}
            }
        }
    }

    /// Reads one piece of output and reserves disk space for more.
    fn poll_once(&mut self, deadline: Option<Instant>) -> Result<PollResult, String> {
        // The error is a message.
        let unreadable = |error: UnreadableFile| error.to_string();
        let (extent, then) = self.output_to_read(deadline).map_err(unreadable)?;
        if self.read_output(extent).map_err(unreadable)? {
            return Ok(PollResult::Read);
        }
        self.keep_space_reserved(extent)?;
        Ok(PollResult::Nothing(then))
    }

    /// Reserves disk space ahead of the client.
    fn keep_space_reserved(&mut self, extent: Extent) -> Result<(), String> {
        // A shortage is reported once; the client is then ended, and its last output fits into the
        // reserve.
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

    /// Returns the shortage of disk space that would also affect another client, if there is one.
    pub fn find_disk_shortage(&mut self) -> Option<String> {
        self.reservations.check().err()
    }

    /// Releases the reserved space that was not used.
    pub fn release_reserved_space(&mut self) {
        self.reservations.release();
    }

    /// Returns how far to read, and what follows then.
    fn output_to_read(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<(Extent, AfterOutput), UnreadableFile> {
        // After a deadline or an exit, later output must not delay that event.
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

    fn extent(&mut self) -> Result<Extent, UnreadableFile> {
        // Stderr is measured first, so that stdout written before a line on stderr is also reported
        // before it.
        let stderr = self.stderr.length()?;
        Ok(Extent { stdout: self.stdout.length()?, stderr })
    }

    /// Reads one piece of output; returns whether there was any.
    fn read_output(&mut self, extent: Extent) -> Result<bool, UnreadableFile> {
        let events = &mut self.events;
        if self.flood == Flood::NotSeen && extent.stdout.max(extent.stderr) > TRANSCRIPT_MAX {
            self.flood = Flood::Reported;
            events.push_back(StreamEvent::TooLarge { limit: TRANSCRIPT_MAX });
        }
        let piece = self.stdout.read(extent.stdout, &mut self.chunk)?;
        self.lines.push(piece, &mut |line| events.push_back(line));
        let spoke = !piece.is_empty();
        self.stderr.skip_to_last(extent.stderr, self.tail.length() as u64);
        let piece = self.stderr.read(extent.stderr, &mut self.chunk)?;
        if !piece.is_empty() {
            self.tail.push(piece);
            events.push_back(StreamEvent::Stderr);
        }
        Ok(spoke || !events.is_empty())
    }

    /// Waits until the next poll.
    async fn wait(&mut self, deadline: Option<Instant>) -> Option<Duration> {
        // Returns the delay if Raymond was suspended meanwhile.
        let look = Instant::now() + self.pause;
        let asked = deadline.map_or(look, |deadline| deadline.min(look));
        // Doubling keeps idle clients cheap; 200 ms is still short for a person who watches.
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

/// Returns the delay of a wakeup if a busy machine does not explain it.
fn suspended_for(asked: Instant, came: Instant) -> Option<Duration> {
    // The delays that a busy machine causes are far below this.
    const USUAL: Duration = Duration::from_secs(5);
    let gap = came.saturating_duration_since(asked);
    (gap > USUAL).then_some(gap)
}

#[cfg(test)]
mod tests;
