//! A process that is on its own from the start: a run in the background.
//!
//! Its words go to files, its end is nobody's business, and it belongs to no run that this process is
//! part of. A new session would need code between fork and exec; the started program, which is ours,
//! makes it itself with [`own_session`].

use std::io;
use std::process::ExitStatus;

use super::child::{self, Child};
use super::client::{Files, append, input};
use super::marker::Marks;
use super::{Spec, command};

/// A process that was let go. It lives on when this is dropped, and is reaped when it ends first.
#[derive(Debug)]
pub struct Detached(Child);

/// Starts a process that outlives this one. The marker of the specification is not used. Needs a
/// runtime with IO.
pub fn detach(spec: &Spec, files: &Files) -> io::Result<Detached> {
    let mut command = command(spec, Marks::detached());
    // Not in a group of its own: whoever leads a group cannot make a session.
    command.stdin(input(&spec.stdin, &files.stdout)?);
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
        self.0.identity().pid
    }

    /// Waits for its exit.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }
}
