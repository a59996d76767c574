//! Runs one attempt at an `exec` step.
//!
//! A step is a text for `bash -c` (no login shell), or a program with arguments. It works in the
//! workspace, reads what it is given or nothing, and nothing below it is left when it has ended: not
//! after a timeout, and not after an exit, when its children have had a short grace. (What a server started for
//! it is known by its marker, and ends with the run.) What it says is
//! bounded: beyond [`STDOUT_MAX`] it is ended, of stderr the last [`STDERR_MAX`] are kept. Whether
//! what it said is what was asked for is judged by whoever asked.

pub mod scratch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use crate::process::{
    self, FinishedProcess, Grace, Identity, Inherit, Input, LeftoverPolicy, Limits, Marker,
    ProcessEnd, Spec,
};
use crate::script::{describe, foreign_variables};

/// The most bytes of stdout: 16 MiB.
pub const STDOUT_MAX: usize = 16 * 1024 * 1024;

/// How many bytes are kept of the end of stderr: 64 KiB.
pub const STDERR_MAX: usize = 64 * 1024;

/// How long children may outlive the step: 2 s.
pub const GRACE: Duration = Duration::from_secs(2);

/// The longest text that is handed over as an argument; Linux takes no argument over 128 KiB. A longer
/// one is read from a file, and its `$0` is that file.
const ARGUMENT_MAX: usize = 120 * 1024;

/// One attempt at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// What to run.
    pub command: ExecCommand,
    /// The workspace.
    pub cwd: PathBuf,
    /// What its environment has besides ours.
    pub environment: Vec<(String, String)>,
    /// What it takes over from our environment.
    pub inherit: Inherit,
    /// What it reads.
    pub stdin: Input,
    /// By what its processes are found again.
    pub marker: Marker,
    /// The longest it may take.
    pub timeout: Duration,
}

/// What a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecCommand {
    /// A text for the shell.
    Shell(String),
    /// A program: a name that is looked up in `PATH`, or a path from the workspace.
    Program {
        /// Which.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecResult {
    /// How it ended.
    pub end: ExecEnd,
    /// Its stdout; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Whether any were.
    pub invalid_utf8: bool,
    /// The end of its stderr; it starts with `…` when it is not all.
    pub stderr: String,
    /// Processes of it that could not be ended.
    pub survivors: Vec<Identity>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEnd {
    /// With exit status 0.
    Succeeded,
    /// With another one, or by a signal: `exit status 3`, `signal 9 (SIGKILL)`.
    Failed {
        /// Which.
        status: String,
    },
    /// It took too long.
    TimedOut {
        /// What it was given.
        after: Duration,
    },
    /// It printed more than is kept. What was kept is there.
    TooLarge {
        /// The most that is kept of stdout, in bytes.
        limit: usize,
    },
    /// It could not be started.
    NotStarted {
        /// Why.
        why: String,
    },
    /// It was cancelled.
    Cancelled,
}

/// Runs an attempt to its end. A cancelled token ends it.
pub async fn run(exec: Exec, cancel: &CancellationToken) -> ExecResult {
    let timeout = exec.timeout;
    run_within(exec, &limits(timeout), cancel).await
}

fn limits(timeout: Duration) -> Limits {
    Limits {
        wall: Some(timeout),
        idle: None,
        output: STDOUT_MAX,
        stderr: STDERR_MAX,
        leftovers: LeftoverPolicy::End,
        grace: Grace { after_exit: GRACE, ..Grace::default() },
    }
}

async fn run_within(exec: Exec, limits: &Limits, cancel: &CancellationToken) -> ExecResult {
    // The file must be there as long as the shell reads it.
    let (spec, _file) = match build_spec(exec) {
        Ok(prepared) => prepared,
        Err(why) => return ExecResult::not_started(why),
    };
    match process::launch(spec).await {
        Ok(process) => ExecResult::of(process.finish(limits, cancel).await),
        Err(why) => ExecResult::not_started(why),
    }
}

fn build_spec(exec: Exec) -> Result<(Spec, Option<NamedTempFile>), String> {
    let Exec { command, cwd, environment, inherit, stdin, marker, timeout: _ } = exec;
    let is_odd = |name: &str| name.is_empty() || name.contains('=');
    if let Some((name, _)) = environment.iter().find(|(name, _)| is_odd(name)) {
        return Err(format!("`{name}` cannot be the name of an environment variable"));
    }
    let mut file = None;
    let (program, arguments) = match command {
        ExecCommand::Shell(text) if text.len() > ARGUMENT_MAX => {
            let kept = scratch::write_file(&text, &marker).map_err(|error| {
                format!("cannot write a shell text of {} bytes to a file: {error}", text.len())
            })?;
            let path = kept.path().as_os_str().to_owned();
            file = Some(kept);
            ("bash".into(), vec![path])
        }
        // A text may start with a dash.
        ExecCommand::Shell(text) => ("bash".into(), vec!["-c".into(), "--".into(), text.into()]),
        ExecCommand::Program { program, arguments } => {
            (resolve_program(&cwd, program), arguments.into_iter().map(Into::into).collect())
        }
    };
    let set = environment.into_iter().map(|(name, value)| (name.into(), value.into()));
    let spec = Spec {
        program,
        arguments,
        cwd,
        inherit,
        set: set.collect(),
        unset: foreign_variables(std::env::vars_os().map(|(name, _)| name)),
        marker,
        stdin,
    };
    Ok((spec, file))
}

/// A path is one from the workspace, wherever we are; a mere name is left to `PATH`.
fn resolve_program(cwd: &Path, program: String) -> OsString {
    if program.contains('/') { cwd.join(program).into() } else { program.into() }
}

impl ExecResult {
    fn not_started(why: String) -> Self {
        Self {
            end: ExecEnd::NotStarted { why },
            stdout: String::new(),
            invalid_utf8: false,
            stderr: String::new(),
            survivors: Vec::new(),
        }
    }

    fn of(ended: FinishedProcess) -> Self {
        let FinishedProcess { end, text, invalid_utf8, stderr, survivors } = ended;
        let end = match end {
            ProcessEnd::Exited(status) if status.success() => ExecEnd::Succeeded,
            ProcessEnd::Exited(status) => ExecEnd::Failed { status: describe(status) },
            ProcessEnd::TimedOut { clock: _, after } => ExecEnd::TimedOut { after },
            ProcessEnd::TooLarge { limit } => ExecEnd::TooLarge { limit },
            ProcessEnd::Cancelled { progressed: _ } => ExecEnd::Cancelled,
            ProcessEnd::ExitUnknown(kind) => {
                ExecEnd::Failed { status: format!("its exit was not seen: {kind}") }
            }
        };
        Self { end, stdout: text, invalid_utf8, stderr, survivors }
    }
}

#[cfg(test)]
mod tests;
