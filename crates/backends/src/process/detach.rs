//! A process that is independent from the start: a run in the background.
//!
//! Its output goes to files, no process waits for its end, and it belongs to no run of this
//! process. Creating a session would need code between fork and exec. The started program is
//! Raymond itself, so it calls [`own_session`] instead.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use super::child::{self, Child};
use super::files::{OutputFiles, append};
use super::marker::MarkerList;
use super::{Marker, command};

/// The description of a background process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Background {
    /// A path, or a name that is looked up in `PATH`.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The standard input of the process; empty for none.
    pub stdin: Vec<u8>,
    /// The output files; both may be the same file.
    pub files: OutputFiles,
}

/// A detached process. It keeps running when this handle is dropped, and is reaped if it ends
/// first.
#[derive(Debug)]
pub struct Detached(Child);

/// Starts a process that outlives this one. Needs a runtime with IO.
pub fn detach(background: &Background) -> io::Result<Detached> {
    let Background { program, arguments, cwd, stdin, files } = background;
    let mut command = command(program, arguments, cwd);
    // No group of its own: a group leader cannot create a session.
    command.env(Marker::VARIABLE, MarkerList::detached()).stdin(match stdin.as_slice() {
        [] => Stdio::null(),
        bytes => in_memory(bytes)?.into(),
    });
    command.stdout(append(&files.stdout)?).stderr(append(&files.stderr)?);
    Ok(Detached(child::spawn(command)?))
}

/// Returns a file in memory, from its start. Unlike a pipe, it needs no writer, so this process may
/// end before it is read.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let file = rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Creates a session for a detached process, so that no terminal can interrupt it or hang up. Must
/// be the first call of that process.
pub fn own_session() -> io::Result<()> {
    match rustix::process::setsid() {
        // EPERM: the process already leads a group or a session.
        Ok(_) | Err(rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Detached {
    pub fn id(&self) -> i32 {
        self.0.pid()
    }

    /// Waits for the exit. Cancelling the wait loses nothing.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }
}

#[cfg(test)]
mod tests;
