//! The one door for processes: start, follow, stop, find again.
//!
//! Every process leads a group of its own and carries a marker in its environment, so the whole
//! tree can be ended: the group, whatever escaped from it with `setsid`, and their descendants. A
//! process is followed through pipes with bounded memory; its end is its exit, never the silence of
//! a pipe that a grandchild holds open. Only known processes are waited for (never "any child"), and
//! none is signalled by its number alone: a number may have been given to somebody else.

pub mod leftovers;
mod marker;
mod output;
mod running;
mod table;
mod tree;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

pub use leftovers::Leftover;
pub use marker::Marker;
pub use running::{Ended, How, Process};
pub use table::Identity;

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// A path, or a name that is looked up in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it works.
    pub cwd: PathBuf,
    /// What its environment has besides ours.
    pub set: Vec<(OsString, OsString)>,
    /// What its environment does not take over from ours.
    pub unset: Vec<OsString>,
    /// By what it is found again.
    pub marker: Marker,
    /// What it reads.
    pub stdin: Input,
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
    /// How patient its end is.
    pub grace: Grace,
}

/// How long each step of an end is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// For children that hold stdout when the process itself has exited.
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

impl Default for Limits {
    fn default() -> Self {
        Self { wall: None, idle: None, output: OUTPUT_MAX, grace: Grace::default() }
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

/// Starts a process that leads its own group. Needs a runtime with IO and time.
pub fn start(spec: Spec) -> io::Result<Process> {
    start_within(spec, std::env::var_os(Marker::VARIABLE))
}

/// Starts a process under the markers of whatever this process itself runs under.
fn start_within(spec: Spec, outer: Option<OsString>) -> io::Result<Process> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns")]
    let mut command = Command::new(&spec.program);
    for name in &spec.unset {
        command.env_remove(name);
    }
    let stdin = match spec.stdin {
        Input::Null => Stdio::null(),
        Input::Bytes(_) => Stdio::piped(),
    };
    let child = command
        .args(&spec.arguments)
        .current_dir(&spec.cwd)
        .envs(spec.set)
        .env(Marker::VARIABLE, spec.marker.within(outer))
        .process_group(0)
        .kill_on_drop(true)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    Process::new(child, spec.marker, spec.stdin)
}

#[cfg(test)]
mod tests;
