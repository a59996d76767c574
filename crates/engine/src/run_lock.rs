//! Takes the lock of a run in the name of this process and version.

use raymond_store::host::ThisHost;
use raymond_store::lock::{self, Claim, Takeover};
use raymond_store::{Lock, RunPaths};

use crate::clock;
use crate::project::Project;

/// Takes the lock of a run.
pub(crate) fn take_lock(
    project: &Project,
    paths: &RunPaths,
    takeover: Takeover,
) -> Result<Lock, lock::Error> {
    Lock::take(project.disk.as_ref(), &ThisHost, &paths.lock, claim(takeover))
}

/// Takes the lock of a run that is to be deleted. This works on a full disk.
pub(crate) fn take_lock_to_delete(
    project: &Project,
    paths: &RunPaths,
) -> Result<Lock, lock::Error> {
    let claim = claim(Takeover::Never);
    Lock::take_to_delete(project.disk.as_ref(), &ThisHost, &paths.lock, claim)
}

fn claim(takeover: Takeover) -> Claim<'static> {
    Claim { since: clock::now().0, version: env!("CARGO_PKG_VERSION"), takeover }
}
