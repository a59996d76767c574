//! The one door for processes: start, follow, stop, find again.
//!
//! Every process leads a group of its own and carries a marker in its environment, so the whole
//! tree can be ended: the group, whatever escaped from it with `setsid`, and their descendants. A
//! script ([`start`]) is followed through pipes that end with its owner; a client ([`start_client`])
//! writes to files, outlives its owner and is found again ([`adopt`]). Memory is bounded in both, and
//! the end is the exit, never the silence of something that a grandchild holds open. Only known
//! processes are waited for (never "any child"), and none is signalled by its number alone: a number
//! may have been given to somebody else.

mod abandoned;
mod child;
mod client;
mod detach;
mod launch;
pub mod leftovers;
mod long_lines;
mod marker;
mod orphans;
mod output;
mod running;
mod table;
mod transcript;
mod tree;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

pub use abandoned::{end_abandoned, find_abandoned, is_abandoned_in, unrecorded_nonce};
use child::Child;
pub use child::reap_orphans;
pub use client::{
    Client, DISK_SPACE_NEEDED, Files, StartError, StreamEvent, Unreadable, adopt, is_untouched,
    release_reserved_space, restarted_since, start_client, was_started,
};
pub(crate) use client::{cause, read_regular};
pub use detach::{Background, Detached, detach, own_session};
pub(crate) use launch::launch;
pub use leftovers::Leftover;
pub use long_lines::shorten_long_lines;
pub use marker::Marker;
pub use orphans::{become_subreaper, end_orphans, end_own, find_escaped};
pub use running::{FinishedProcess, Process, ProcessEnd};
pub use table::Identity;
pub use transcript::{LINE_MAX, TRANSCRIPT_MAX, Transcript, last_errors, read_transcript};

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// A path, or a name that is looked up in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it works.
    pub cwd: PathBuf,
    /// What its environment takes over from ours.
    pub inherit: Inherit,
    /// What its environment has besides ours.
    pub set: Vec<(OsString, OsString)>,
    /// What its environment does not take over from ours.
    pub unset: Vec<OsString>,
    /// By what it is found again.
    pub marker: Marker,
    /// What it reads.
    pub stdin: Input,
}

/// What a process takes over from our environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Inherit {
    /// Everything.
    #[default]
    All,
    /// The variables of these names.
    Only(Vec<OsString>),
}

impl Inherit {
    /// The variables of these names; none means everything.
    pub fn only(names: Option<&[String]>) -> Self {
        names.map_or(Self::All, |names| Self::Only(names.iter().map(OsString::from).collect()))
    }
}

/// What a process reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Input {
    /// Nothing.
    #[default]
    Null,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
}

/// How long a process may take, and how much it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest it may take.
    pub wall: Option<Duration>,
    /// The longest it may be silent on both stdout and stderr.
    pub idle: Option<Duration>,
    /// The most that is kept of stdout, in bytes.
    pub output: usize,
    /// The most that is kept of the end of stderr, in bytes.
    pub stderr: usize,
    /// What becomes of children that are there after the exit and have let go of stdout.
    pub leftovers: LeftoverPolicy,
    /// How patient its end is.
    pub grace: Grace,
}

/// What becomes of children that a process leaves behind. Those that hold its stdout are always ended
/// after the grace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeftoverPolicy {
    /// They live on: the run ends them.
    #[default]
    Keep,
    /// They are ended after the grace, too.
    End,
}

/// How long each step of an end is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// For children that are to end when the process itself has exited.
    pub after_exit: Duration,
    /// From SIGINT to SIGTERM.
    pub interrupt: Duration,
    /// From SIGTERM to SIGKILL.
    pub terminate: Duration,
    /// From SIGKILL until a process counts as one that cannot be ended.
    pub kill: Duration,
}

/// The most that is kept of the output of a turn: 64 MiB.
pub const OUTPUT_MAX: usize = 64 * 1024 * 1024;

/// How much is kept of the end of stderr, unless it is said otherwise: 2 KiB.
pub const STDERR_KEPT: usize = 2 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: None,
            idle: None,
            output: OUTPUT_MAX,
            stderr: STDERR_KEPT,
            leftovers: LeftoverPolicy::default(),
            grace: Grace::default(),
        }
    }
}

impl Default for Grace {
    fn default() -> Self {
        Self {
            after_exit: Duration::from_secs(10),
            interrupt: Duration::from_secs(2),
            terminate: Duration::from_secs(3),
            kill: Duration::from_secs(10),
        }
    }
}

/// The open files of a program: pipes, a handle of the process, and what is open for a moment while it is started.
const FILES_PER_PROGRAM: u8 = 5;

/// The open files of the rest of this process.
const OTHER_FILES: u8 = 40;

/// The open files of this process while it runs so many programs.
pub const fn open_files_for(programs: u32) -> u64 {
    OTHER_FILES as u64 + FILES_PER_PROGRAM as u64 * programs as u64
}

/// How many programs can run at a time: each takes some of the files that a process may have open.
pub fn max_parallel_programs() -> u32 {
    let open = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let others = u64::from(OTHER_FILES);
    let most =
        open.map_or(u64::MAX, |open| open.saturating_sub(others) / u64::from(FILES_PER_PROGRAM));
    u32::try_from(most).unwrap_or(u32::MAX).max(1)
}

/// Starts a process that leads its own group. Needs a runtime with IO and time.
pub fn start(spec: Spec) -> io::Result<Process> {
    start_within(spec, outer_markers())
}

/// Starts a process under the markers of whatever this process itself runs under.
fn start_within(spec: Spec, outer: Option<OsString>) -> io::Result<Process> {
    let child = spawn(&spec, outer)?;
    Ok(Process::new(child, spec.marker, spec.stdin))
}

fn spawn(spec: &Spec, outer: Option<OsString>) -> io::Result<Child> {
    let stdin = match spec.stdin {
        Input::Null => Stdio::null(),
        Input::Bytes(_) => Stdio::piped(),
    };
    let mut command = spec.command(outer);
    command
        .process_group(0)
        .kill_on_drop(true)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    child::spawn(command)
}

/// The markers that this process itself runs under.
fn outer_markers() -> Option<OsString> {
    std::env::var_os(Marker::VARIABLE)
}

/// A program with its place; its environment is ours until it is given another.
fn command(program: &OsStr, arguments: &[OsString], cwd: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns")]
    let mut command = Command::new(program);
    command.args(arguments).current_dir(cwd);
    command
}

impl Spec {
    fn command(&self, outer: Option<OsString>) -> Command {
        let mut command = command(&self.program, &self.arguments, &self.cwd);
        if let Inherit::Only(names) = &self.inherit {
            let ours = names.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
            command.env_clear().envs(ours);
        }
        for name in &self.unset {
            command.env_remove(name);
        }
        let set = self.set.iter().map(|(name, value)| (name, value));
        command.envs(set).env(Marker::VARIABLE, self.marker.within(outer));
        command
    }
}

#[cfg(test)]
pub(crate) mod test_fixture;
#[cfg(test)]
mod tests;
