//! A child of this process, and the list of all of them.
//!
//! Whoever reaps what was orphaned must know which dead children somebody waits for: the status of a
//! child can be taken once, and a number that was reaped is given away. So everything is spawned
//! here, under one lock with the list, and leaves the list when its exit was taken.

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

/// The children whose exits others take.
struct StartedChildren {
    /// By their numbers: none is given away before its exit was taken.
    followed: BTreeSet<i32>,
    /// Those that are waited for behind the scenes, nobody knows until when.
    dropped: BTreeSet<Identity>,
}

fn started() -> MutexGuard<'static, StartedChildren> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that was started here.
#[derive(Debug)]
pub(super) struct Child {
    inner: tokio::process::Child,
    pid: i32,
}

/// Starts a child.
pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    let mut started = started();
    let inner = command.spawn()?;
    let pid = inner.id().map(u32::cast_signed);
    let pid = pid.ok_or_else(|| io::Error::other("the process has no id"))?;
    started.followed.insert(pid);
    Ok(Child { inner, pid })
}

/// Reaps the dead children that were not started here, each by its own number. Those have lost their
/// parents, and this process is their subreaper.
pub fn reap_orphans() {
    // Mostly nobody has died, and the table need not be read.
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

/// Whether anybody is below this process, dead or alive. What loses its parent there becomes a child of this process,
/// if it is their subreaper: without a child, nobody is.
pub(super) fn has_children() -> bool {
    !matches!(peek(), Err(Errno::CHILD))
}

/// Whether a child may be there, dead or alive, that was not started here. Where all that loses its parent becomes a
/// child, and there is none, nothing is below those that were started here and have ended. What others started for
/// them, a server or the first process of a container, is not below them.
pub(super) fn may_have_adopted() -> bool {
    let is_stranger = |pid: &i32| !started().followed.contains(pid);
    !table::is_subreaper()
        || has_children() && table::children().is_none_or(|pids| pids.iter().any(is_stranger))
}

/// A look at the dead children that takes nothing.
fn peek() -> rustix::io::Result<Option<WaitIdStatus>> {
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}

impl Child {
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Even one that is dead already is in the table until its exit was taken.
    pub(super) fn identity(&self) -> Identity {
        table::identity(self.pid).unwrap_or(Identity { pid: self.pid, start_time: 0 })
    }

    pub(super) fn pipes(
        &mut self,
    ) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.inner.stdin.take(), self.inner.stdout.take(), self.inner.stderr.take())
    }

    /// Waits for its exit; nothing is lost when the waiting is given up.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.inner.wait().await?;
        started().followed.remove(&self.pid);
        Ok(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // One whose exit was taken has no number any more: it may be another's by now.
        if self.inner.id().is_some() {
            let mut started = started();
            started.followed.remove(&self.pid);
            started.dropped.insert(self.identity());
        }
    }
}
