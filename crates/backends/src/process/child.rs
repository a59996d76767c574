//! A child of this process, and the list of all of them.
//!
//! Whoever reaps what was orphaned must know which dead children somebody waits for: the status of a
//! child can be taken once, and a number that was reaped is given away. So everything is spawned
//! here, under one lock with the list, and leaves the list when its exit was taken.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use super::table::{self, Identity};

static STARTED: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());

fn started() -> MutexGuard<'static, BTreeSet<Identity>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that was started here.
#[derive(Debug)]
pub(super) struct Child {
    inner: tokio::process::Child,
    identity: Identity,
}

/// Starts a child.
pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    let mut started = started();
    let inner = command.spawn()?;
    let pid = inner.id().map(u32::cast_signed);
    let pid = pid.ok_or_else(|| io::Error::other("the process has no id"))?;
    // Even one that is dead already is in the table: nobody has waited for it.
    let identity = table::identity(pid).unwrap_or(Identity { pid, start_time: 0 });
    started.insert(identity);
    Ok(Child { inner, identity })
}

/// Reaps the dead children that were not started here, each by its own number. Those have lost their
/// parents, and this process is their subreaper.
pub fn reap_orphans() {
    // A look that takes nothing: mostly nobody has died, and the table need not be read.
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if !matches!(waitid(WaitId::All, peek), Ok(Some(_))) {
        return;
    }
    let mut started = started();
    for identity in table::dead_children() {
        if let (false, Some(pid)) = (started.contains(&identity), Pid::from_raw(identity.pid)) {
            let _reaped_or_gone = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
    // A child that was dropped is waited for behind the scenes.
    started.retain(|identity| table::identity(identity.pid) == Some(*identity));
}

impl Child {
    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    pub(super) fn pipes(
        &mut self,
    ) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.inner.stdin.take(), self.inner.stdout.take(), self.inner.stderr.take())
    }

    /// Waits for its exit; nothing is lost when the waiting is given up.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.inner.wait().await?;
        started().remove(&self.identity);
        Ok(status)
    }
}
