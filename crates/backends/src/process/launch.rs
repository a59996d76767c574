//! Starting a process with an error message that explains why it could not start.
//!
//! `script` and `exec` use it. Clients use `client::start` because they must outlive their owner.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;

use super::{RunningProcess, Spec, outer_markers, spawn};

/// Starts a process; the error is a message for the user.
pub(crate) async fn launch(spec: Spec) -> Result<RunningProcess, String> {
    // A program file that was just written may still be open for writing in a sibling between fork
    // and exec. The kernel then refuses with ETXTBSY, which passes within milliseconds: 20 tries of
    // 10 ms.
    const TRIES: u32 = 20;
    let mut tries = 0;
    loop {
        match spawn(&spec, outer_markers()) {
            Ok(child) => return Ok(RunningProcess::new(child, spec.marker, spec.stdin)),
            Err(error) if is_busy(&error) && tries < TRIES => tries += 1,
            Err(error) => return Err(spawn_error_message(&spec, &error)),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ExecutableFileBusy
}

fn spawn_error_message(spec: &Spec, error: &io::Error) -> String {
    // The kernel reports ENOENT for both, so the directory is checked first.
    if !spec.cwd.is_dir() {
        return format!("the working directory {} does not exist", spec.cwd.display());
    }
    let program = Path::new(&spec.program);
    let is_name = program.components().count() == 1;
    let hint = match error.kind() {
        io::ErrorKind::NotFound if program.exists() && !is_name => {
            " (the interpreter of its `#!` line is missing)"
        }
        io::ErrorKind::NotFound if is_name && spec.program.as_encoded_bytes().contains(&b' ') => {
            " (it is not in `PATH`; arguments belong in `args`)"
        }
        // `io::ErrorKind` has no stable kind for ENOEXEC.
        _ if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
            " (a script begins with a line such as `#!/bin/sh`)"
        }
        io::ErrorKind::NotFound if is_name => " (it is not in `PATH`)",
        io::ErrorKind::PermissionDenied => " (it is not an executable file)",
        io::ErrorKind::ArgumentListTooLong if arguments_dominate(spec) => {
            " (its arguments are too large)"
        }
        io::ErrorKind::ArgumentListTooLong => " (its environment is too large)",
        _ => "",
    };
    format!("cannot run {}: {error}{hint}", spec.program.display())
}

fn arguments_dominate(spec: &Spec) -> bool {
    let arguments: usize = spec.arguments.iter().map(|argument| argument.len()).sum();
    let set: usize = spec.set.iter().map(|(name, value)| name.len() + value.len()).sum();
    arguments > set
}
