//! Follows a path from an open directory, and never out of it. A path that leads out is `EXDEV`.

mod walk;

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{OFlags, Stat};
use rustix::io::{Errno, Result};

/// Who follows a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathResolver {
    /// The kernel; where it cannot, the walk.
    Kernel,
    /// We, component by component.
    #[cfg_attr(not(test), expect(dead_code, reason = "chosen where the kernel has no such call"))]
    Walk,
}

/// For reading, and without waiting for anybody who writes.
const FOR_READING: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

impl PathResolver {
    /// Opens a path for reading.
    pub(super) fn open(self, directory: &OwnedFd, path: &Path) -> Result<OwnedFd> {
        match self {
            Self::Kernel => match kernel::open(directory, path, FOR_READING) {
                Err(errno) if is_absent(errno) => walk::open(directory, path, FOR_READING),
                opened => opened,
            },
            Self::Walk => walk::open(directory, path, FOR_READING),
        }
    }

    /// What a path leads to.
    pub(super) fn stat(self, directory: &OwnedFd, path: &Path) -> Result<Stat> {
        match self {
            Self::Kernel => match kernel::stat(directory, path) {
                Err(errno) if is_absent(errno) => walk::stat(directory, path),
                found => found,
            },
            Self::Walk => walk::stat(directory, path),
        }
    }
}

/// An old kernel does not know the call, and a sandbox may forbid it.
fn is_absent(errno: Errno) -> bool {
    errno == Errno::NOSYS || errno == Errno::PERM
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
    use rustix::io::{Errno, Result};

    /// How often a path is followed that changes meanwhile.
    const TRIES: u32 = 1000;

    pub(super) fn open(directory: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            match openat2(directory, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => tries += 1,
                opened => return opened,
            }
        }
    }

    pub(super) fn stat(directory: &OwnedFd, path: &Path) -> Result<Stat> {
        fstat(open(directory, path, OFlags::PATH | OFlags::CLOEXEC)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{OFlags, Stat};
    use rustix::io::{Errno, Result};

    pub(super) fn open(_: &OwnedFd, _: &Path, _: OFlags) -> Result<OwnedFd> {
        Err(Errno::NOSYS)
    }

    pub(super) fn stat(_: &OwnedFd, _: &Path) -> Result<Stat> {
        Err(Errno::NOSYS)
    }
}
