//! Resolving a path from an open directory without leaving it.
//!
//! A path that leads out fails with `EXDEV`, as with `openat2`.

mod walk;

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{OFlags, Stat};
use rustix::io::{Errno, Result};

/// The method of resolving a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathResolver {
    /// The kernel, or the walk if the kernel has no such call.
    Kernel,
    /// A walk in this crate, component by component.
    #[cfg_attr(not(test), expect(dead_code, reason = "chosen where the kernel has no such call"))]
    Walk,
}

/// Flags for reading without waiting for a writer.
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

    /// Returns the metadata of a path.
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

/// Whether the call is missing: an old kernel does not know it, and a sandbox may forbid it.
fn is_absent(errno: Errno) -> bool {
    errno == Errno::NOSYS || errno == Errno::PERM
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
    use rustix::io::{Errno, Result};

    /// How often to retry a path that changes during the resolution. The kernel then returns
    /// EAGAIN.
    const TRIES: u32 = 1000;

    pub(super) fn open(directory: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
        // Magic links in `/proc` can lead anywhere, so they are refused, too.
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
