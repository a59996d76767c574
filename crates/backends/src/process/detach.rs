//! A process that is on its own from the start: a run in the background.
//!
//! Its words go to files, its end is nobody's business, and it belongs to no run that this process is
//! part of. A new session would need code between fork and exec; the started program, which is ours,
//! makes it itself with [`own_session`].

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use super::child::{self, Child};
use super::client::{Files, append};
use super::marker::MarkerList;
use super::{Marker, command};

/// What to start in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Background {
    /// A path, or a name that is looked up in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it works.
    pub cwd: PathBuf,
    /// Where its words go; both may be one file.
    pub files: Files,
}

/// A process that was let go. It lives on when this is dropped, and is reaped when it ends first.
#[derive(Debug)]
pub struct Detached(Child);

/// Starts a process that outlives this one. Needs a runtime with IO.
pub fn detach(background: &Background) -> io::Result<Detached> {
    let Background { program, arguments, cwd, files } = background;
    let mut command = command(program, arguments, cwd);
    // Not in a group of its own: whoever leads a group cannot make a session.
    command.env(Marker::VARIABLE, MarkerList::detached()).stdin(Stdio::null());
    command.stdout(append(&files.stdout)?).stderr(append(&files.stderr)?);
    Ok(Detached(child::spawn(command)?))
}

/// The first act of a process that was detached: no terminal can interrupt it or hang up on it.
pub fn own_session() -> io::Result<()> {
    match rustix::process::setsid() {
        // It leads a group, or a session, already.
        Ok(_) | Err(rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Detached {
    /// Its number.
    pub fn id(&self) -> i32 {
        self.0.pid()
    }

    /// Waits for its exit; nothing is lost when the waiting is given up.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }
}

#[cfg(test)]
mod tests;
