//! Running a script state.
//!
//! An executable script that starts with `#!` is run directly; every other script is run by `bash`.
//! It works in the agent's directory, has no stdin and answers through stdout. The caller reads the
//! tags in its output. Variables of an outer script around this process are not passed on, because
//! they belong to another run.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::LazyLock;

use raymond_core::failure::TurnFailure;
use raymond_core::protocol::{Source, scan};
use raymond_core::time::Span;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use crate::foreign_variables::foreign_variables;
use crate::process::{
    self, FinishedProcess, Identity, Inherit, Limits, Marker, ProcessEnd, ProcessStdin, Spec,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The script file or its pinned copy.
    pub path: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// Variables to set in addition.
    pub environment: Vec<(String, String)>,
    /// The variables that the script inherits.
    pub inherit: Inherit,
    /// The marker by which the processes of the script are found again.
    pub marker: Marker,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEnd {
    Succeeded(ScriptSuccess),
    Failed {
        failure: TurnFailure,
        /// The output that is not part of the failure.
        output: ScriptOutput,
    },
    Interrupted {
        /// Whether the script had written anything.
        progressed: bool,
        output: ScriptOutput,
    },
}

/// The output of a script that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptOutput {
    pub stdout: String,
    pub stderr: String,
}

/// The output of a script that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptSuccess {
    pub text: String,
    /// Whether stdout was not UTF-8, so that bytes were replaced.
    pub invalid_utf8: bool,
    pub stderr: String,
    /// Whether a child kept stdout open after the script had ended, until it was ended.
    pub held_open: bool,
    /// Children that kept stdout open and could not be ended.
    pub survivors: Vec<Identity>,
}

/// Runs a script until it ends.
pub async fn run(script: Script, limits: &Limits, cancel: &CancellationToken) -> ScriptEnd {
    let spec = match build_spec(script) {
        Ok(spec) => spec,
        Err(why) => return not_started(why),
    };
    match process::launch(spec).await {
        Ok(process) => script_end(process.finish(limits, cancel).await),
        Err(why) => not_started(why),
    }
}

fn not_started(why: String) -> ScriptEnd {
    ScriptEnd::Failed { failure: TurnFailure::NotStarted { why }, output: ScriptOutput::default() }
}

/// Computed once, because Raymond never changes its own environment.
static FOREIGN: LazyLock<Vec<OsString>> =
    LazyLock::new(|| foreign_variables(std::env::vars_os().map(|(name, _)| name)));

/// `PATH` with the directory of this program at its end; `None` if `raymond` is found without it.
/// `raymond emit` then works in every script, also if cron or a service starts Raymond by its path.
static EXTENDED_PATH: LazyLock<Option<OsString>> = LazyLock::new(|| {
    let path = std::env::var_os("PATH")?;
    let own = std::env::current_exe().ok()?;
    let name = own.file_name().filter(|name| *name == "raymond")?;
    if std::env::split_paths(&path).any(|directory| directory.join(name).is_file()) {
        return None;
    }
    let directories = std::env::split_paths(&path).chain(own.parent().map(Path::to_owned));
    std::env::join_paths(directories).ok()
});

fn build_spec(script: Script) -> Result<Spec, String> {
    let Script { path, cwd, environment, inherit, marker } = script;
    let unreadable = |error| format!("could not read the script {}: {error}", path.display());
    let path = std::path::absolute(&path).map_err(unreadable)?;
    // Workflows may contain `.bat` and `.ps1` states for other platforms.
    if path.extension() != Some(OsStr::new("sh")) {
        return Err(format!("{} cannot run on this platform", path.display()));
    }
    let (program, arguments) = match interpreter(&path).map_err(unreadable)? {
        Interpreter::Own => (path.into_os_string(), Vec::new()),
        Interpreter::Bash => (OsString::from("bash"), vec![path.into_os_string()]),
    };
    let mut set: Vec<(OsString, OsString)> =
        environment.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
    let inherits_path = match &inherit {
        Inherit::All => true,
        Inherit::Only(names) => names.iter().any(|name| name == "PATH"),
    };
    set.extend(EXTENDED_PATH.clone().filter(|_| inherits_path).map(|path| ("PATH".into(), path)));
    Ok(Spec {
        program,
        arguments,
        cwd,
        inherit,
        set,
        unset: FOREIGN.clone(),
        marker,
        stdin: ProcessStdin::Null,
    })
}

enum Interpreter {
    Own,
    Bash,
}

fn interpreter(path: &Path) -> io::Result<Interpreter> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // A script without an execute bit still runs, as with `bash script.sh`.
    if metadata.permissions().mode() & 0o111 == 0 {
        return Ok(Interpreter::Bash);
    }
    let mut start = [0; 2];
    match file.read_exact(&mut start) {
        Ok(()) if start == *b"#!" => Ok(Interpreter::Own),
        Ok(()) => Ok(Interpreter::Bash),
        // A script of fewer than two bytes has no `#!` line.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Interpreter::Bash),
        Err(error) => Err(error),
    }
}

fn script_end(ended: FinishedProcess) -> ScriptEnd {
    let FinishedProcess { end, text, invalid_utf8, stderr, whole_stderr: _, held_open, survivors } =
        ended;
    let (failure, output) = match end {
        ProcessEnd::Exited(status) if status.success() => {
            return ScriptEnd::Succeeded(ScriptSuccess {
                text,
                invalid_utf8,
                stderr,
                held_open,
                survivors,
            });
        }
        ProcessEnd::Cancelled { progressed } => {
            return ScriptEnd::Interrupted {
                progressed,
                output: ScriptOutput { stdout: text, stderr },
            };
        }
        ProcessEnd::Exited(status) => failed(describe(status), text, stderr),
        ProcessEnd::ExitUnknown(kind) => {
            failed(format!("could not read the exit status: {kind}"), text, stderr)
        }
        ProcessEnd::TimedOut { clock, after } => {
            let after = Span(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
            (TurnFailure::Timeout { clock, after }, ScriptOutput { stdout: text, stderr })
        }
        ProcessEnd::TooLarge { limit } => {
            let (head, tail) = head_and_tail(&text);
            let too_large = TurnFailure::OutputTooLarge { limit: limit as u64, head, tail };
            (too_large, ScriptOutput { stdout: String::new(), stderr })
        }
    };
    ScriptEnd::Failed { failure, output }
}

fn failed(status: String, stdout: String, stderr: String) -> (TurnFailure, ScriptOutput) {
    let tag = scan(&stdout, Source::Script).next().map(|found| found.name);
    // The failure already contains stderr.
    (TurnFailure::Script { status, stderr, tag }, ScriptOutput { stdout, stderr: String::new() })
}

/// Returns the beginning and the end of a text that is too large to keep.
fn head_and_tail(text: &str) -> (String, String) {
    // Each has a mark where text is missing; the redaction of secrets relies on this mark.
    const SHOWN_BYTES: usize = 1024;
    let head = &text[..text.floor_char_boundary(SHOWN_BYTES)];
    // Cut at character boundaries, because slicing inside a character panics.
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(SHOWN_BYTES))..];
    let whole = head.len() == text.len();
    if whole {
        (text.to_owned(), text.to_owned())
    } else {
        (format!("{head}…"), format!("…{tail}"))
    }
}

/// Describes an exit status: `exit status 3`, `signal 9 (SIGKILL)`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => match name_of(signal) {
            Some(name) => format!("signal {signal} ({name})"),
            None => format!("signal {signal}"),
        },
        (None, None) => status.to_string(),
    }
}

fn name_of(signal: i32) -> Option<&'static str> {
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
    ];
    names.into_iter().find_map(|(number, name)| (number.as_raw() == signal).then_some(name))
}

#[cfg(test)]
mod tests;
