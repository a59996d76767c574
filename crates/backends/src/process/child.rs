//! Child processes, and the list of all children of Raymond.
//!
//! Raymond is a subreaper: orphaned descendants become its children, and it must reap them. Reaping
//! must not take the exit status of a child for which another task waits, because a status can be
//! taken only once and a reaped pid can be reused. Therefore every child is spawned here, under one
//! lock with the list, and leaves the list when its status was taken.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, waitid, waitpid};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use super::table::{self, Identity};

static STARTED: Mutex<StartedChildren> =
    Mutex::new(StartedChildren { followed: BTreeSet::new(), dropped: BTreeSet::new() });

/// The children whose exit status other tasks take.
struct StartedChildren {
    /// By pid. The kernel cannot reuse these pids, because their status was not taken yet.
    followed: BTreeSet<i32>,
    /// Children that were dropped. Tokio waits for them in the background for an unknown time.
    dropped: BTreeSet<Identity>,
}

fn started() -> MutexGuard<'static, StartedChildren> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(super) struct Child {
    inner: tokio::process::Child,
    pid: i32,
}

/// Starts a child.
pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    // The lock covers the spawn: a child that dies at once must already be in the list when
    // `reap_orphans` runs.
    let mut started = started();
    let inner = command.spawn()?;
    let pid = inner.id().map(u32::cast_signed);
    let pid = pid.ok_or_else(|| io::Error::other("the process has no id"))?;
    started.followed.insert(pid);
    Ok(Child { inner, pid })
}

/// Reaps dead children that were not started here, each by its pid. Such children have lost their
/// parent, and Raymond is their subreaper.
pub fn reap_orphans() {
    // Usually no child has died, and the process table need not be read.
    if !matches!(peek(), Ok(Some(_))) {
        return;
    }
    let mut started = started();
    for identity in table::dead_children() {
        let is_ours =
            started.followed.contains(&identity.pid) || started.dropped.contains(&identity);
        if let (false, Some(pid)) = (is_ours, Pid::from_raw(identity.pid)) {
            let _reaped_or_gone = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
    started.dropped.retain(|identity| table::identity(identity.pid) == Some(*identity));
}

/// Whether this process has any child, dead or alive. Because Raymond is the subreaper of its
/// descendants, no child means that there are no descendants.
pub(super) fn has_children() -> bool {
    !matches!(peek(), Err(Errno::CHILD))
}

/// Whether there may be a child, dead or alive, that was not started here. If Raymond is a
/// subreaper and has no such child, no descendants of ended children are left. Processes that other
/// programs started for them, such as a server or the init process of a container, are not
/// descendants.
pub(super) fn may_have_adopted() -> bool {
    let is_stranger = |pid: &i32| !started().followed.contains(pid);
    !table::is_subreaper()
        || has_children() && table::children().is_none_or(|pids| pids.iter().any(is_stranger))
}

/// Looks for a dead child without taking its status.
fn peek() -> rustix::io::Result<Option<WaitIdStatus>> {
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}

impl Child {
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the identity. A dead child stays in the process table until its status is taken.
    pub(super) fn identity(&self) -> Identity {
        table::identity(self.pid).unwrap_or(Identity { pid: self.pid, start_time: 0 })
    }

    pub(super) fn pipes(
        &mut self,
    ) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.inner.stdin.take(), self.inner.stdout.take(), self.inner.stderr.take())
    }

    /// Waits for the exit. Cancelling the wait loses nothing.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.inner.wait().await?;
        started().followed.remove(&self.pid);
        Ok(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // If the status was taken, the pid may already belong to another process.
        if self.inner.id().is_some() {
            let mut started = started();
            started.followed.remove(&self.pid);
            started.dropped.insert(self.identity());
        }
    }
}
