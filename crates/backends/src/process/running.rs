//! A process that was started, followed until it has ended.
//!
//! The end is the exit of the process and the end of its stdout. When something else still holds
//! stdout, that is waited for only so long. Whatever is printed, memory stays bounded; whatever
//! happens, nothing of the tree is left when the turn was cut off.

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
use super::output::{Output, Tail, TooLarge};
use super::table::Identity;
use super::tree::Tree;
use super::{Input, LeftoverPolicy, Limits, Marker};

/// A running process. Dropped before its end, its tree is killed.
#[derive(Debug)]
pub struct Process {
    id: i32,
    child: Child,
    tree: Tree,
    started: Instant,
    /// When and how the process itself exited.
    exit: Option<(Instant, ExitStatus)>,
    stdin: Option<(ChildStdin, Cursor<Vec<u8>>)>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    output: Output,
    tail: Tail,
    last_output: Instant,
    ended: bool,
}

/// A process that has ended.
#[derive(Debug)]
pub struct FinishedProcess {
    /// How.
    pub end: ProcessEnd,
    /// Its stdout.
    pub text: String,
    /// Whether its stdout was not UTF-8, and bytes were replaced.
    pub invalid_utf8: bool,
    /// The end of its stderr.
    pub stderr: String,
    /// Processes that could not be ended.
    pub survivors: Vec<Identity>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// By itself.
    Exited(ExitStatus),
    /// A clock ran out.
    TimedOut {
        /// Which.
        clock: Clock,
        /// Its length.
        after: Duration,
    },
    /// It printed more than is kept.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// It was cancelled.
    Cancelled {
        /// Whether it had printed anything to stdout.
        progressed: bool,
    },
    /// Its exit could not be observed.
    ExitUnknown(io::ErrorKind),
}

/// What happens next to a running process.
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

/// What was read last, with room for what is read at once. Most read little: what they do not need is not touched.
struct Buffers {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Process {
    pub(super) fn new(mut child: Child, marker: Marker, input: Input) -> Self {
        let pid = child.pid();
        let (stdin, stdout, stderr) = child.pipes();
        let now = Instant::now();
        let bytes = match input {
            Input::Null => Vec::new(),
            Input::Bytes(bytes) => bytes,
        };
        Self {
            id: pid,
            tree: Tree::of_group(pid, marker),
            started: now,
            exit: None,
            stdin: stdin.map(|pipe| (pipe, Cursor::new(bytes))),
            stdout,
            stderr,
            output: Output::default(),
            tail: Tail::default(),
            last_output: now,
            ended: false,
            child,
        }
    }

    /// The number of the process, which is also that of its group.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Follows the process to its end, which a clock, a limit or the token may bring about.
    pub async fn finish(mut self, limits: &Limits, cancel: &CancellationToken) -> FinishedProcess {
        let mut buffers =
            Buffers { stdout: Vec::with_capacity(64 * 1024), stderr: Vec::with_capacity(8 * 1024) };
        self.tail = Tail::of(limits.stderr);
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
            LeftoverPolicy::Keep if orderly => Vec::new(),
            LeftoverPolicy::End if orderly && self.wait_for_children(limits, cancel).await => {
                Vec::new()
            }
            LeftoverPolicy::Keep | LeftoverPolicy::End => self.end_tree(limits, &mut buffers).await,
        };
        self.ended = true;
        let (text, invalid_utf8) = std::mem::take(&mut self.output).finish();
        FinishedProcess { end, text, invalid_utf8, stderr: self.tail.text(), survivors }
    }

    async fn next(
        &mut self,
        limits: &Limits,
        cancel: &CancellationToken,
        buffers: &mut Buffers,
    ) -> Next {
        let due = self.due(limits);
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

    /// Takes in what happened; says how the process ends when this is its end.
    fn advance(
        &mut self,
        next: Next,
        buffers: &mut Buffers,
        limits: &Limits,
    ) -> Option<ProcessEnd> {
        let exited = self.exit.map(|(_, status)| ProcessEnd::Exited(status));
        match next {
            Next::Cancelled => {
                self.take_stdout(&mut buffers.stdout, limits);
                let progressed = !self.output.is_empty();
                Some(exited.unwrap_or(ProcessEnd::Cancelled { progressed }))
            }
            Next::Due(Due::Clock(clock, after)) => {
                Some(exited.unwrap_or(ProcessEnd::TimedOut { clock, after }))
            }
            Next::Due(Due::GraceOver) => exited,
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
            // A process need not read what it is given: a broken pipe is the end of feeding it.
            Next::Fed(Ok(0) | Err(_)) => {
                self.stdin = None;
                None
            }
        }
    }

    /// The next clock to run out.
    fn due(&self, limits: &Limits) -> Option<(Instant, Due)> {
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

    /// Takes what is in stdout already.
    fn take_stdout(&mut self, buffer: &mut Vec<u8>, limits: &Limits) {
        let Some(stdout) = &self.stdout else { return };
        if read_now(stdout, buffer).is_ok() {
            let _cut_off_anyway = self.output.push(buffer, limits.output);
        }
    }

    /// Takes what was written to stderr before the exit, without waiting for those who hold it.
    fn drain_stderr(&mut self, buffer: &mut Vec<u8>) {
        // A pipe holds 64 KiB by default and 1 MiB at most: a flooding child cannot keep us here.
        const READS: usize = 128;
        let Some(stderr) = &self.stderr else { return };
        for _ in 0..READS {
            match read_now(stderr, buffer) {
                Ok(1..) => self.tail.push(buffer),
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// Gives the children that are there after the exit the rest of the grace. Whether they are gone.
    async fn wait_for_children(&mut self, limits: &Limits, cancel: &CancellationToken) -> bool {
        let exit = self.exit.map_or_else(Instant::now, |(at, _)| at);
        let settled = self.tree.wait_until_empty(exit + limits.grace.after_exit);
        cancel.run_until_cancelled(settled).await.unwrap_or(false)
    }

    /// Ends the tree while its pipes are still emptied: a process that says its last words must not
    /// hang on a full pipe.
    async fn end_tree(&mut self, limits: &Limits, buffers: &mut Buffers) -> Vec<Identity> {
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

impl Drop for Process {
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

/// Reads what is there, without waiting.
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
    tail: &mut Tail,
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
