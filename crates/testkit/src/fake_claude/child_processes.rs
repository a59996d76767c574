//! Processes that outlive the fake client. They exit when the configuration directory is removed,
//! so a failed test leaves no process running.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::setsid;

use super::directive::ChildKind;
use super::stream;

const TASK_FLAG: &str = "--fake-offspring";
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The task of such a process, with the configuration directory and the name of its pid file.
#[derive(Clone, Copy)]
pub(super) enum Task<'a> {
    /// Leaves the session, and keeps running.
    Leave(&'a Path, &'a str),
    /// Leaves the session, starts a process that keeps running, and exits.
    ForkAgain(&'a Path, &'a str),
    /// Keeps running.
    Stay(&'a Path, &'a str),
}

/// Returns the task if the arguments contain one.
pub(super) fn parse_task(words: &[String]) -> Option<Task<'_>> {
    let [TASK_FLAG, task, config, name] =
        [0, 1, 2, 3].map(|n| words.get(n).map_or("", String::as_str))
    else {
        return None;
    };
    let config = Path::new(config);
    match task {
        "leave" => Some(Task::Leave(config, name)),
        "fork-again" => Some(Task::ForkAgain(config, name)),
        "stay" => Some(Task::Stay(config, name)),
        _ => None,
    }
}

pub(super) fn run_task(task: Task<'_>) -> ExitCode {
    match task {
        Task::Leave(config, name) => {
            setsid().ok();
            stay(config, name)
        }
        Task::ForkAgain(config, name) => {
            setsid().ok();
            let mut command = own_command("stay", config, name);
            // Unlike a grandchild, whose open stdout is what its test is about.
            command.stdout(Stdio::null()).stderr(Stdio::null());
            ExitCode::from(u8::from(command.spawn().is_err()))
        }
        Task::Stay(config, name) => stay(config, name),
    }
}

/// Writes a pid file, and keeps running.
fn stay(config: &Path, name: &str) -> ExitCode {
    let (signatures, drafts) = (config.join("offspring"), config.join("drafts"));
    // A rename makes the file appear at once: a test that lists the directory must not see a
    // partial file.
    let signed = fs::create_dir_all(&signatures)
        .and_then(|()| fs::create_dir_all(&drafts))
        .and_then(|()| fs::write(drafts.join(name), std::process::id().to_string()))
        .and_then(|()| fs::rename(drafts.join(name), signatures.join(name)));
    while signed.is_ok() && config.exists() {
        sleep(POLL_INTERVAL * 10);
    }
    ExitCode::SUCCESS
}

/// Starts a process, and waits until its pid file exists.
pub(super) fn start(kind: ChildKind, config: &Path) -> std::io::Result<Option<Child>> {
    let name = stream::uuid();
    let mut command = match kind {
        ChildKind::Grandchild => own_command("leave", config, &name),
        ChildKind::Daemon | ChildKind::BareDaemon => own_command("fork-again", config, &name),
    };
    if kind == ChildKind::BareDaemon {
        // Without an environment the process has no marker, so Raymond cannot recognise it by one.
        command.env_clear();
    }
    let mut child = command.spawn()?;
    // The next line of the script may end the client; by then the process must exist, or the test
    // would race with its start.
    while !config.join("offspring").join(&name).exists() && config.exists() {
        sleep(POLL_INTERVAL);
    }
    if kind == ChildKind::Grandchild {
        return Ok(Some(child));
    }
    // The process in between exits at once. It is collected here, so that no zombie is left.
    child.wait()?;
    Ok(None)
}

#[expect(clippy::disallowed_methods, reason = "what a client starts is what is tested")]
fn own_command(task: &str, config: &Path, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.arg(TASK_FLAG).arg(task).arg(config).arg(name).stdin(Stdio::null());
    command
}
