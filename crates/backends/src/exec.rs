//! Running one attempt at an `exec` step.
//!
//! A step is a text for `bash -c` (not a login shell), or a program with arguments. It works in the
//! workspace and reads the given stdin or nothing. When it has ended, none of its descendants is
//! left, neither after a timeout nor after an exit; after an exit they get a short grace period. A
//! process that is not a descendant, because a server that was already running started it for the
//! step, is found by its marker and ends with the run.
//!
//! Output is bounded: the step is ended beyond [`STDOUT_MAX`], and only the last [`STDERR_MAX`]
//! bytes of stderr are kept. The caller validates the output.

pub mod scratch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use crate::foreign_variables::foreign_variables;
use crate::process::{
    self, FinishedProcess, Grace, Identity, Inherit, LeftoverPolicy, Limits, Marker, ProcessEnd,
    ProcessStdin, Spec,
};
use crate::script::describe;

/// The largest stdout in bytes: 16 MiB.
pub const STDOUT_MAX: usize = 16 * 1024 * 1024;

/// The kept part of the end of stderr in bytes: 64 KiB.
pub const STDERR_MAX: usize = 64 * 1024;

/// How long children may outlive the step: 2 s.
pub const GRACE: Duration = Duration::from_secs(2);

/// The longest text to pass as an argument, in bytes. Linux accepts no argument over 128 KiB. A
/// longer text is read from a file, and its `$0` is that file.
const ARGUMENT_MAX: usize = 120 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRequest {
    pub command: ExecCommand,
    /// The workspace.
    pub cwd: PathBuf,
    /// Variables to set in addition.
    pub environment: Vec<(String, String)>,
    /// The variables that the step inherits.
    pub inherit: Inherit,
    pub stdin: ProcessStdin,
    /// The marker by which the processes of the step are found again.
    pub marker: Marker,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecCommand {
    /// A text for the shell.
    Shell(String),
    /// A program: a name to look up in `PATH`, or a path relative to the workspace.
    Program { program: String, arguments: Vec<String> },
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecResult {
    pub end: ExecEnd,
    /// The stdout; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Whether any bytes were replaced.
    pub invalid_utf8: bool,
    /// The end of stderr; it starts with `…` if it is incomplete.
    pub stderr: String,
    /// Processes that could not be ended.
    pub survivors: Vec<Identity>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEnd {
    /// Exit status 0.
    Succeeded,
    /// Another exit status or a signal: `exit status 3`, `signal 9 (SIGKILL)`.
    Failed {
        status: String,
    },
    TimedOut {
        /// The time limit.
        after: Duration,
    },
    /// The step wrote more than the limit. The kept part is in the result.
    TooLarge {
        /// The limit of stdout in bytes.
        limit: usize,
    },
    NotStarted {
        why: String,
    },
    Cancelled,
}

/// Runs an attempt until it ends. A cancelled token ends it.
pub async fn run(exec: ExecRequest, cancel: &CancellationToken) -> ExecResult {
    let timeout = exec.timeout;
    run_within(exec, &limits(timeout), cancel).await
}

fn limits(timeout: Duration) -> Limits {
    Limits {
        wall: Some(timeout),
        // A step has only a total time limit; silence is not limited.
        idle: None,
        output: STDOUT_MAX,
        stderr: STDERR_MAX,
        leftovers: LeftoverPolicy::End,
        grace: Grace { after_exit: GRACE, ..Grace::default() },
    }
}

async fn run_within(exec: ExecRequest, limits: &Limits, cancel: &CancellationToken) -> ExecResult {
    // The file must exist as long as the shell reads it.
    let (spec, _file) = match build_spec(exec) {
        Ok(prepared) => prepared,
        Err(why) => return ExecResult::not_started(why),
    };
    match process::launch(spec).await {
        Ok(process) => ExecResult::of(process.finish(limits, cancel).await),
        Err(why) => ExecResult::not_started(why),
    }
}

fn build_spec(exec: ExecRequest) -> Result<(Spec, Option<NamedTempFile>), String> {
    let ExecRequest { command, cwd, environment, inherit, stdin, marker, timeout: _ } = exec;
    // Such a name would set another variable, or none.
    let is_odd = |name: &str| name.is_empty() || name.contains('=');
    if let Some((name, _)) = environment.iter().find(|(name, _)| is_odd(name)) {
        return Err(format!("`{name}` cannot be the name of an environment variable"));
    }
    let mut file = None;
    let (program, arguments) = match command {
        ExecCommand::Shell(text) if text.len() > ARGUMENT_MAX => {
            let kept = scratch::write_file(&text, &marker).map_err(|error| {
                format!("could not write a shell text of {} bytes to a file: {error}", text.len())
            })?;
            let path = kept.path().as_os_str().to_owned();
            file = Some(kept);
            ("bash".into(), vec![path])
        }
        // `--` is needed because a text may start with a dash.
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

/// Resolves a path from the workspace, independent of the current directory.
fn resolve_program(cwd: &Path, program: String) -> OsString {
    // A plain name is left to `PATH`.
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
        // As it was written, like stdout.
        let FinishedProcess { end, text, invalid_utf8, whole_stderr: stderr, survivors, .. } =
            ended;
        let end = match end {
            ProcessEnd::Exited(status) if status.success() => ExecEnd::Succeeded,
            ProcessEnd::Exited(status) => ExecEnd::Failed { status: describe(status) },
            ProcessEnd::TimedOut { clock: _, after } => ExecEnd::TimedOut { after },
            ProcessEnd::TooLarge { limit } => ExecEnd::TooLarge { limit },
            ProcessEnd::Cancelled { progressed: _ } => ExecEnd::Cancelled,
            ProcessEnd::ExitUnknown(kind) => {
                ExecEnd::Failed { status: format!("could not read the exit status: {kind}") }
            }
        };
        Self { end, stdout: text, invalid_utf8, stderr, survivors }
    }
}

#[cfg(test)]
mod tests;
