//! A process that is followed through pipes until it ends.
//!
//! The process has ended when it has exited and its stdout is closed. If another process keeps
//! stdout open, Raymond waits only for a grace period. Memory stays bounded for any output. If the
//! turn is interrupted, nothing of the process tree is left.

use std::convert::Infallible;
use std::future::pending;
use std::io::{self, Cursor};
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::time::Duration;

use raymond_core::failure::Clock;
use rustix::buffer::spare_capacity;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::child::Child;
use super::output::{OutputTail, ProcessOutput, TooLarge};
use super::table::Identity;
use super::tree::Tree;
use super::{LeftoverPolicy, Limits, Marker, ProcessStdin};

/// A running process. Dropping it before its end kills its tree.
#[derive(Debug)]
pub struct RunningProcess {
    id: i32,
    child: Child,
    tree: Tree,
    started: Instant,
    /// The time and the status of the exit.
    exit: Option<(Instant, ExitStatus)>,
    stdin: Option<(ChildStdin, Cursor<Vec<u8>>)>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    output: ProcessOutput,
    tail: OutputTail,
    last_output: Instant,
    /// Whether a child kept stdout open for the whole grace period.
    held_open: bool,
    ended: bool,
}

#[derive(Debug)]
pub struct FinishedProcess {
    pub end: ProcessEnd,
    pub text: String,
    /// Whether stdout was not UTF-8, so that bytes were replaced.
    pub invalid_utf8: bool,
    /// The end of stderr, without white space at its end.
    pub stderr: String,
    /// The same with that white space.
    pub whole_stderr: String,
    /// Whether a child kept stdout open after the exit, until it was ended.
    pub held_open: bool,
    /// Processes that could not be ended.
    pub survivors: Vec<Identity>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    Exited(ExitStatus),
    /// A timeout passed.
    TimedOut {
        clock: Clock,
        /// The length of the timeout.
        after: Duration,
    },
    /// The process wrote more than the limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    Cancelled {
        /// Whether the process had written anything to stdout.
        progressed: bool,
    },
    /// The exit status could not be read.
    ExitUnknown(io::ErrorKind),
}

/// The next event of a running process.
enum Next {
    Cancelled,
    Exited(io::Result<ExitStatus>),
    Stdout(io::Result<usize>),
    Stderr(io::Result<usize>),
    Fed(io::Result<usize>),
    Due(Due),
}

#[derive(Clone, Copy)]
enum Due {
    Clock(Clock, Duration),
    GraceOver,
}

/// The read buffers. Their capacity is reserved at once, but memory pages that a small output does
/// not touch cost nothing.
struct Buffers {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl RunningProcess {
    pub(super) fn new(mut child: Child, marker: Marker, input: ProcessStdin) -> Self {
        let pid = child.pid();
        let (stdin, stdout, stderr) = child.pipes();
        let now = Instant::now();
        let bytes = match input {
            ProcessStdin::Null => Vec::new(),
            ProcessStdin::Bytes(bytes) => bytes,
        };
        Self {
            id: pid,
            tree: Tree::for_group(pid, marker),
            started: now,
            exit: None,
            stdin: stdin.map(|pipe| (pipe, Cursor::new(bytes))),
            stdout,
            stderr,
            output: ProcessOutput::default(),
            tail: OutputTail::default(),
            last_output: now,
            held_open: false,
            ended: false,
            child,
        }
    }

    /// Returns the pid, which is also the id of the process group.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Follows the process until it exits, a limit is reached or the token is cancelled.
    pub async fn finish(mut self, limits: &Limits, cancel: &CancellationToken) -> FinishedProcess {
        let mut buffers =
            Buffers { stdout: Vec::with_capacity(64 * 1024), stderr: Vec::with_capacity(8 * 1024) };
        self.tail = OutputTail::of(limits.stderr);
        let end = loop {
            if let (Some((_, status)), None) = (self.exit, &self.stdout) {
                self.drain_stderr(&mut buffers.stderr);
                break ProcessEnd::Exited(status);
            }
            let next = self.next(limits, cancel, &mut buffers).await;
            if let Some(end) = self.advance(next, &mut buffers, limits) {
                break end;
            }
        };
        let orderly = matches!(end, ProcessEnd::Exited(_)) && self.stdout.is_none();
        let survivors = match limits.leftovers {
            // Children that have closed stdout may keep running, for example a server that a script
            // started.
            LeftoverPolicy::Keep if orderly => Vec::new(),
            LeftoverPolicy::End if orderly && self.wait_for_children(limits, cancel).await => {
                Vec::new()
            }
            LeftoverPolicy::Keep | LeftoverPolicy::End => self.end_tree(limits, &mut buffers).await,
        };
        self.ended = true;
        let (text, invalid_utf8) = std::mem::take(&mut self.output).finish();
        let (stderr, whole_stderr) = (self.tail.text(), self.tail.whole_text());
        let held_open = self.held_open;
        FinishedProcess { end, text, invalid_utf8, stderr, whole_stderr, held_open, survivors }
    }

    async fn next(
        &mut self,
        limits: &Limits,
        cancel: &CancellationToken,
        buffers: &mut Buffers,
    ) -> Next {
        let due = self.due(limits);
        // `biased`: cancellation and exit come before output, so that a flood of output cannot
        // delay them.
        tokio::select! {
            biased;
            () = cancel.cancelled() => Next::Cancelled,
            status = self.child.wait(), if self.exit.is_none() => Next::Exited(status),
            length = read(&mut self.stdout, &mut buffers.stdout) => Next::Stdout(length),
            length = read(&mut self.stderr, &mut buffers.stderr) => Next::Stderr(length),
            length = feed(&mut self.stdin) => Next::Fed(length),
            due = wait_until(due) => Next::Due(due),
        }
    }

    /// Handles an event, and returns the end if this event is the end of the process.
    fn advance(
        &mut self,
        next: Next,
        buffers: &mut Buffers,
        limits: &Limits,
    ) -> Option<ProcessEnd> {
        let exited = self.exit.map(|(_, status)| ProcessEnd::Exited(status));
        match next {
            Next::Cancelled => {
                // The script may have written just before the cancellation; `progressed` must count
                // that output.
                self.take_stdout(&mut buffers.stdout, limits);
                let progressed = !self.output.is_empty();
                Some(exited.unwrap_or(ProcessEnd::Cancelled { progressed }))
            }
            Next::Due(Due::Clock(clock, after)) => {
                Some(exited.unwrap_or(ProcessEnd::TimedOut { clock, after }))
            }
            Next::Due(Due::GraceOver) => {
                self.held_open = true;
                exited
            }
            Next::Exited(Ok(status)) => {
                self.exit = Some((Instant::now(), status));
                self.tree.note_leader_reaped();
                None
            }
            Next::Exited(Err(error)) => Some(ProcessEnd::ExitUnknown(error.kind())),
            Next::Stdout(Ok(1..)) => {
                self.last_output = Instant::now();
                match self.output.push(&buffers.stdout, limits.output) {
                    Ok(()) => None,
                    Err(TooLarge) => Some(ProcessEnd::TooLarge { limit: limits.output }),
                }
            }
            Next::Stdout(Ok(0) | Err(_)) => {
                self.stdout = None;
                None
            }
            Next::Stderr(Ok(1..)) => {
                self.last_output = Instant::now();
                self.tail.push(&buffers.stderr);
                None
            }
            Next::Stderr(Ok(0) | Err(_)) => {
                self.stderr = None;
                None
            }
            Next::Fed(Ok(1..)) => None,
            // A process need not read its stdin: a broken pipe only ends the writing.
            Next::Fed(Ok(0) | Err(_)) => {
                self.stdin = None;
                None
            }
        }
    }

    /// Returns the next deadline.
    fn due(&self, limits: &Limits) -> Option<(Instant, Due)> {
        // After the exit, only children can keep stdout open. They get the grace period and no
        // other limit.
        if let Some((exit, _)) = self.exit {
            return Some((exit + limits.grace.after_exit, Due::GraceOver));
        }
        let due = |since: Instant, after: Option<Duration>, clock| {
            let after = after?;
            Some((since.checked_add(after)?, Due::Clock(clock, after)))
        };
        let wall = due(self.started, limits.wall, Clock::Wall);
        let idle = due(self.last_output, limits.idle, Clock::Idle);
        wall.into_iter().chain(idle).min_by_key(|(at, _)| *at)
    }

    /// Reads the output that is already in the pipe.
    fn take_stdout(&mut self, buffer: &mut Vec<u8>, limits: &Limits) {
        let Some(stdout) = &self.stdout else { return };
        if read_now(stdout, buffer).is_ok() {
            let _ends_anyway = self.output.push(buffer, limits.output);
        }
    }

    /// Reads stderr that was written before the exit, without waiting for other writers.
    fn drain_stderr(&mut self, buffer: &mut Vec<u8>) {
        // A pipe contains 64 KiB by default and 1 MiB at most. The limit on reads keeps a child
        // that floods stderr from blocking Raymond here.
        const READS: usize = 128;
        let Some(stderr) = &self.stderr else { return };
        for _ in 0..READS {
            match read_now(stderr, buffer) {
                Ok(1..) => self.tail.push(buffer),
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// Gives remaining children the rest of the grace period, and returns whether all have ended.
    async fn wait_for_children(&mut self, limits: &Limits, cancel: &CancellationToken) -> bool {
        let exit = self.exit.map_or_else(Instant::now, |(at, _)| at);
        let settled = self.tree.wait_until_empty(exit + limits.grace.after_exit);
        cancel.run_until_cancelled(settled).await.unwrap_or(false)
    }

    /// Ends the tree while its pipes are still emptied.
    async fn end_tree(&mut self, limits: &Limits, buffers: &mut Buffers) -> Vec<Identity> {
        // A process that writes its last output must not block on a full pipe.
        let drained = drain(&mut self.stdout, &mut self.stderr, &mut self.tail, buffers);
        let survivors = tokio::select! {
            survivors = self.tree.end(&limits.grace) => survivors,
            never = drained => match never {},
        };
        self.drain_stderr(&mut buffers.stderr);
        if survivors.is_empty() && self.exit.is_none() {
            let _already_known_to_be_dead = self.child.wait().await;
        }
        survivors
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        if !self.ended {
            self.tree.kill_now();
        }
    }
}

async fn read(
    pipe: &mut Option<impl AsyncRead + Unpin>,
    buffer: &mut Vec<u8>,
) -> io::Result<usize> {
    buffer.clear();
    match pipe {
        Some(pipe) => pipe.read_buf(buffer).await,
        None => pending().await,
    }
}

/// Reads available bytes without waiting.
fn read_now(pipe: &impl AsFd, buffer: &mut Vec<u8>) -> rustix::io::Result<usize> {
    buffer.clear();
    rustix::io::read(pipe, spare_capacity(buffer))
}

async fn feed(stdin: &mut Option<(ChildStdin, Cursor<Vec<u8>>)>) -> io::Result<usize> {
    match stdin {
        Some((pipe, bytes)) => pipe.write_buf(bytes).await,
        None => pending().await,
    }
}

async fn wait_until(due: Option<(Instant, Due)>) -> Due {
    match due {
        Some((at, due)) => {
            sleep_until(at).await;
            due
        }
        None => pending().await,
    }
}

async fn drain(
    stdout: &mut Option<ChildStdout>,
    stderr: &mut Option<ChildStderr>,
    tail: &mut OutputTail,
    buffers: &mut Buffers,
) -> Infallible {
    loop {
        tokio::select! {
            length = read(stdout, &mut buffers.stdout) => {
                if !matches!(length, Ok(1..)) {
                    *stdout = None;
                }
            }
            length = read(stderr, &mut buffers.stderr) => match length {
                Ok(1..) => tail.push(&buffers.stderr),
                Ok(0) | Err(_) => *stderr = None,
            },
        }
    }
}
