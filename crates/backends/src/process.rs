//! Processes: start, follow, stop, find again. This is the only module that spawns.
//!
//! Every process leads its own process group and carries a marker in its environment. Raymond can
//! therefore end the whole tree: the group, everything that left the group with `setsid`, and all
//! descendants.
//!
//! - A script ([`start`]) is followed through pipes that close with its owner.
//! - A client ([`start_client`]) writes to files, outlives its owner and can be found again
//!   ([`adopt`]).
//!
//! Memory is bounded in both cases. The end is the exit of the process, never the end of a pipe
//! that a grandchild may keep open. Raymond waits only for known processes (never for "any child")
//! and never signals a process by its number alone, because the kernel reuses numbers.

mod abandoned;
mod child;
mod client;
mod detach;
mod files;
mod followed;
mod launch;
pub mod leftovers;
mod long_lines;
mod marker;
mod orphans;
mod output;
mod running;
mod stream_event;
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
    Client, DISK_SPACE_NEEDED, StartError, adopt, is_untouched, release_reserved_space,
    restarted_since, start_client, was_started,
};
pub use detach::{Background, Detached, detach, own_session};
pub use files::OutputFiles;
pub(crate) use files::{cause, read_regular, write_private};
pub use followed::UnreadableFile;
pub(crate) use launch::launch;
pub use leftovers::Leftover;
pub use long_lines::shorten_long_lines;
pub use marker::Marker;
pub use orphans::{become_subreaper, end_orphans, end_own, find_escaped};
pub use running::{FinishedProcess, ProcessEnd, RunningProcess};
pub use stream_event::StreamEvent;
pub use table::Identity;
pub use transcript::{LINE_MAX, TRANSCRIPT_MAX, Transcript, last_errors, read_transcript};

/// The description of a process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// A path, or a name that is looked up in `PATH`.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The variables that the process inherits.
    pub inherit: Inherit,
    /// Variables to set in addition.
    pub set: Vec<(OsString, OsString)>,
    /// Variables that the process must not inherit.
    pub unset: Vec<OsString>,
    /// The marker by which the process can be found again.
    pub marker: Marker,
    pub stdin: ProcessStdin,
}

/// The part of Raymond's environment that a process inherits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Inherit {
    #[default]
    All,
    /// Only the variables with these names.
    Only(Vec<OsString>),
}

impl Inherit {
    /// Inherits the variables with these names; `None` means all.
    pub fn only(names: Option<&[String]>) -> Self {
        names.map_or(Self::All, |names| Self::Only(names.iter().map(OsString::from).collect()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProcessStdin {
    #[default]
    Null,
    /// These bytes, then the end of the file.
    Bytes(Vec<u8>),
}

/// The limits of time and output of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest run time.
    pub wall: Option<Duration>,
    /// The longest time without output on stdout and stderr.
    pub idle: Option<Duration>,
    /// The largest stdout, in bytes.
    pub output: usize,
    /// The kept part of the end of stderr, in bytes.
    pub stderr: usize,
    /// The treatment of children that still run after the exit and have closed stdout.
    pub leftovers: LeftoverPolicy,
    /// The pauses between the signals that end the process.
    pub grace: Grace,
}

/// The treatment of children that a process leaves behind. Children that keep its stdout open are
/// always ended after the grace period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeftoverPolicy {
    /// The children keep running until the run ends them.
    #[default]
    Keep,
    /// The children are ended after the grace period.
    End,
}

/// The waiting times while a process is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// For children after the process itself has exited.
    pub after_exit: Duration,
    /// From SIGINT to SIGTERM.
    pub interrupt: Duration,
    /// From SIGTERM to SIGKILL.
    pub terminate: Duration,
    /// From SIGKILL until a process counts as impossible to end.
    pub kill: Duration,
}

/// The largest stdout of a turn: 64 MiB. All of it is kept in memory.
pub const OUTPUT_MAX: usize = 64 * 1024 * 1024;

/// The kept part of the end of stderr by default: 2 KiB.
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

/// The open files of one running program: three pipes, one process handle and one file that is open
/// briefly during the start.
const FILES_PER_PROGRAM: u8 = 5;

/// An upper estimate of the open files of the rest of this process.
const OTHER_FILES: u8 = 40;

/// Returns the number of open files that Raymond needs for this many programs.
pub const fn open_files_for(programs: u32) -> u64 {
    OTHER_FILES as u64 + FILES_PER_PROGRAM as u64 * programs as u64
}

/// Returns how many programs can run at the same time within the limit of open files.
pub fn max_parallel_programs() -> u32 {
    let open = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let others = u64::from(OTHER_FILES);
    let most =
        open.map_or(u64::MAX, |open| open.saturating_sub(others) / u64::from(FILES_PER_PROGRAM));
    // At least one, however low the limit is.
    u32::try_from(most).unwrap_or(u32::MAX).max(1)
}

/// Starts a process that leads its own group. Needs a runtime with IO and time.
pub fn start(spec: Spec) -> io::Result<RunningProcess> {
    start_within(spec, outer_markers())
}

/// Starts a process with the given outer markers, which tests can choose.
fn start_within(spec: Spec, outer: Option<OsString>) -> io::Result<RunningProcess> {
    let child = spawn(&spec, outer)?;
    Ok(RunningProcess::new(child, spec.marker, spec.stdin))
}

fn spawn(spec: &Spec, outer: Option<OsString>) -> io::Result<Child> {
    let stdin = match spec.stdin {
        ProcessStdin::Null => Stdio::null(),
        ProcessStdin::Bytes(_) => Stdio::piped(),
    };
    let mut command = spec.command(outer);
    command
        .process_group(0)
        // A second safety net: `RunningProcess` ends its whole tree when it is dropped.
        .kill_on_drop(true)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    child::spawn(command)
}

/// Returns the markers under which Raymond itself runs.
fn outer_markers() -> Option<OsString> {
    std::env::var_os(Marker::VARIABLE)
}

/// Creates a command.
fn command(program: &OsStr, arguments: &[OsString], cwd: &Path) -> Command {
    // It inherits Raymond's environment until the caller changes that.
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
            // A listed variable that is not set stays unset, instead of becoming empty.
            command.env_clear().envs(ours);
        }
        for name in &self.unset {
            command.env_remove(name);
        }
        // The marker comes last, so that no variable of a workflow can replace it.
        let set = self.set.iter().map(|(name, value)| (name, value));
        command.envs(set).env(Marker::VARIABLE, self.marker.within(outer));
        command
    }
}

#[cfg(test)]
pub(crate) mod test_fixture;
#[cfg(test)]
mod tests;
