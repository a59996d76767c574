//! A client whose words go to a file, so that it outlives its owner.
//!
//! Nothing ties it to the process that started it: its stdin is complete before it
//! starts, its stdout is its transcript, and whoever owns the run next follows that file on. What is
//! heard is read by offset, with bounded memory. The end is the exit of the client itself, whatever
//! its children hold open.

mod adopted;
mod exit;
mod followed;
mod regular;
mod room;
mod start;

use std::collections::VecDeque;
use std::future::ready;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

pub use adopted::{adopt, restarted_since, was_started};
pub(super) use regular::open_to_read;
pub(crate) use regular::read_regular;
pub(crate) use room::cause;
pub use room::{ROOM_NEEDED, is_untouched, release_room};
pub use start::{Files, StartError, start_client};
pub(super) use start::{append, private};

use exit::Exit;
pub(super) use followed::Followed;
pub use followed::Unreadable;
use room::Rooms;

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
    life: Life,
    /// Whether it may live on when this is dropped.
    left: bool,
    stdout: Followed,
    stderr: Followed,
    rooms: Rooms,
    /// Whether it was told that there is no room.
    shortage: Shortage,
    chunk: Vec<u8>,
    lines: Lines,
    tail: Tail,
    flood: Flood,
    heard: VecDeque<Heard>,
    pause: Duration,
    /// The deadline that has passed, and what had been written by then.
    passed: Option<(Instant, Extent)>,
}

/// What is heard of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A line of its stdout without its newline; the last one may have had none.
    Line(Vec<u8>),
    /// A line that was too long to keep.
    Cut {
        /// Its length in bytes.
        length: u64,
    },
    /// It wrote to stderr.
    Stderr,
    /// It has written more than is put up with; told once.
    Flooded {
        /// The limit in bytes, for stdout and stderr each.
        limit: u64,
    },
    /// This process did not run for that long, and could not look: clocks that were set before are
    /// to be moved. A machine that sleeps does not show here, because its clock stands still too.
    Woke {
        /// How long.
        gap: Duration,
    },
    /// It has exited, and every line of it was heard. The status is known of own children only.
    Exited(Option<ExitStatus>),
    /// The deadline has passed, and all that was written by then was heard.
    Deadline,
    /// The client must be ended: its files cannot be read, or there is no room for what it writes.
    Broken {
        /// A sentence.
        why: String,
    },
}

#[derive(Debug)]
enum Life {
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
    Unseen,
    Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shortage {
    Unseen,
    Told,
}

/// How far both files go.
#[derive(Debug, Clone, Copy)]
struct Extent {
    stdout: u64,
    stderr: u64,
}

/// What a look at the files came to.
enum Looked {
    Heard,
    Nothing(Then),
}

/// What is to be done when all has been heard.
enum Then {
    Exited(Option<ExitStatus>),
    Deadline,
    Wait,
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

impl Client {
    fn new(
        exit: Exit,
        identity: Identity,
        tree: Tree,
        [stdout, stderr]: [Followed; 2],
        rooms: Rooms,
    ) -> Self {
        Self {
            identity,
            exit,
            tree,
            life: Life::Running,
            left: false,
            stdout,
            stderr,
            rooms,
            shortage: Shortage::Unseen,
            chunk: vec![0; CHUNK],
            lines: Lines::default(),
            tail: Tail::default(),
            flood: Flood::Unseen,
            heard: VecDeque::new(),
            pause: SHORTEST_PAUSE,
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
    pub async fn next(&mut self, deadline: Option<Instant>) -> Heard {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return heard;
            }
            self.notice_exit().await;
            let then = match self.look_once(deadline) {
                Ok(Looked::Heard) => {
                    self.pause = SHORTEST_PAUSE;
                    // One that never stops writing must not keep all others waiting.
                    tokio::task::consume_budget().await;
                    continue;
                }
                Ok(Looked::Nothing(then)) => then,
                Err(why) => return Heard::Broken { why },
            };
            match then {
                Then::Exited(status) => {
                    return self.lines.finish().unwrap_or(Heard::Exited(status));
                }
                Then::Deadline => {
                    self.passed = None;
                    return Heard::Deadline;
                }
                Then::Wait => {
                    if let Some(gap) = self.wait(deadline).await {
                        return Heard::Woke { gap };
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
                Life::Running => self.exit.seen().await,
                Life::Over { status, .. } => status,
            };
            self.over(status);
        }
        survivors
    }

    /// Lets go of it without ending it: whoever owns the run next adopts it.
    pub fn leave(mut self) {
        self.left = true;
    }

    /// One whose children never stop writing is never waited for.
    async fn notice_exit(&mut self) {
        if let Life::Running = self.life {
            tokio::select! {
                biased;
                status = self.exit.seen() => self.over(status),
                () = ready(()) => {}
            }
        }
    }

    /// Hears a piece of what has been written, and keeps room for more. An error is a sentence.
    fn look_once(&mut self, deadline: Option<Instant>) -> Result<Looked, String> {
        let unreadable = |error: Unreadable| error.to_string();
        let (extent, then) = self.horizon(deadline).map_err(unreadable)?;
        if self.look(extent).map_err(unreadable)? {
            return Ok(Looked::Heard);
        }
        self.keep_room(extent)?;
        Ok(Looked::Nothing(then))
    }

    /// A shortage is told once: the client is ended then, and its last words fit into the reserve.
    fn keep_room(&mut self, extent: Extent) -> Result<(), String> {
        match (&self.life, self.shortage) {
            (Life::Running, Shortage::Unseen) => {}
            (Life::Running, Shortage::Told) | (Life::Over { .. }, _) => return Ok(()),
        }
        let Extent { stdout, stderr } = extent;
        self.rooms.keep_ahead(stdout, stderr).inspect_err(|_| self.shortage = Shortage::Told)
    }

    /// Why another client could not write either, if the machine is to blame.
    pub fn find_shortage(&mut self) -> Option<String> {
        self.rooms.check().err()
    }

    /// Releases the space that was reserved for what is not written any more.
    pub fn release_room(&mut self) {
        self.rooms.release();
    }

    /// How far is to be heard, and what comes then. Once a clock has run out or the client has
    /// exited, what is written later must not put that off.
    fn horizon(&mut self, deadline: Option<Instant>) -> Result<(Extent, Then), Unreadable> {
        if let Life::Over { status, extent } = self.life {
            let extent = match extent {
                Some(extent) => extent,
                None => self.extent()?,
            };
            return Ok((extent, Then::Exited(status)));
        }
        let passed = deadline.filter(|at| *at <= Instant::now());
        let Some(deadline) = passed else {
            return Ok((self.extent()?, Then::Wait));
        };
        let extent = match self.passed {
            Some((at, extent)) if at == deadline => extent,
            _ => self.extent()?,
        };
        self.passed = Some((deadline, extent));
        Ok((extent, Then::Deadline))
    }

    fn extent(&mut self) -> Result<Extent, Unreadable> {
        // In this order, what is said on stdout before anything on stderr is heard before it.
        let stderr = self.stderr.length()?;
        Ok(Extent { stdout: self.stdout.length()?, stderr })
    }

    /// Hears a piece of what has been written; says whether there was any.
    fn look(&mut self, extent: Extent) -> Result<bool, Unreadable> {
        let heard = &mut self.heard;
        if self.flood == Flood::Unseen && extent.stdout.max(extent.stderr) > TRANSCRIPT_MAX {
            self.flood = Flood::Told;
            heard.push_back(Heard::Flooded { limit: TRANSCRIPT_MAX });
        }
        let piece = self.stdout.read(extent.stdout, &mut self.chunk)?;
        self.lines.push(piece, &mut |line| heard.push_back(line));
        let spoke = !piece.is_empty();
        self.stderr.skip_to_last(extent.stderr, self.tail.length() as u64);
        let piece = self.stderr.read(extent.stderr, &mut self.chunk)?;
        if !piece.is_empty() {
            self.tail.push(piece);
            heard.push_back(Heard::Stderr);
        }
        Ok(spoke || !heard.is_empty())
    }

    /// Waits until it is time for another look. Returns how much later than that it is, if notably.
    async fn wait(&mut self, deadline: Option<Instant>) -> Option<Duration> {
        let look = Instant::now() + self.pause;
        let asked = deadline.map_or(look, |deadline| deadline.min(look));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        tokio::select! {
            biased;
            status = self.exit.seen() => self.over(status),
            () = sleep_until(asked) => {}
        }
        late(asked, Instant::now())
    }

    fn over(&mut self, status: Option<ExitStatus>) {
        self.tree.leader_was_reaped();
        self.life = Life::Over { status, extent: self.extent().ok() };
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        match self.life {
            Life::Running if !self.left => self.tree.kill_now(),
            Life::Running | Life::Over { .. } => {}
        }
    }
}

/// By how much something came late, when a busy machine does not explain it.
fn late(asked: Instant, came: Instant) -> Option<Duration> {
    const USUAL: Duration = Duration::from_secs(5);
    let gap = came.saturating_duration_since(asked);
    (gap > USUAL).then_some(gap)
}

#[cfg(test)]
mod tests;
