//! A directory that nothing leads out of.
//!
//! Files are named by paths relative to it, and a path is followed step by step from the open
//! directory: by the kernel where it can (`openat2`), else by a walk of our own. So a link, a `..` or
//! something that is swapped while it is looked at is refused when it leads out, however the tree
//! changes meanwhile. Only regular files are read, up to [`FILE_MAX`], and a FIFO keeps nobody
//! waiting. Hard links and mounts are what they are: whoever can make them owns the workspace.

mod path_inside;
mod schemas;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;

pub use schemas::SchemaFiles;

use path_inside::PathResolver;

/// The most bytes of a file that is read: 64 MiB.
pub const FILE_MAX: u64 = 64 * 1024 * 1024;

/// A directory that was opened; it stays the same directory when its path is given to another.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    directory: OwnedFd,
    resolver: PathResolver,
}

/// A directory that cannot be a workspace.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace {}: {source}", path.display())]
pub struct OpenError {
    /// Which.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// A path of a workspace that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {path} in the workspace: {why}")]
pub struct WorkspaceError {
    /// The path as it was given.
    pub path: String,
    /// Why not.
    pub why: WorkspaceErrorKind,
}

/// Why a path cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceErrorKind {
    /// It is absolute, or a `..` or a link leads out.
    #[error("it leads out of the workspace")]
    Escapes,
    /// There is nothing.
    #[error("it does not exist")]
    Missing,
    /// It is a directory, a FIFO, a socket or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// It has more than is read.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// The most that is read.
        limit: u64,
    },
    /// The system says no.
    #[error("{0}")]
    Unreadable(String),
}

impl Workspace {
    /// Opens a directory.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let unopened = |source: io::Error| OpenError { path: path.to_owned(), source };
        let absolute = std::path::absolute(path).map_err(unopened)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&absolute, flags, Mode::empty());
        let directory = directory.map_err(|errno| unopened(errno.into()))?;
        Ok(Self { path: absolute, directory, resolver: PathResolver::Kernel })
    }

    /// Its absolute path, with its links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a path stays inside, as things are now; it need not exist.
    pub fn check(&self, relative: &str) -> Result<(), WorkspaceError> {
        let fault = |why| WorkspaceError { path: relative.to_owned(), why };
        match self.stat(relative) {
            Ok(_) | Err(WorkspaceErrorKind::Missing) => Ok(()),
            Err(why) => Err(fault(why)),
        }
    }

    /// All that is in a file.
    pub fn read(&self, relative: &str) -> Result<Vec<u8>, WorkspaceError> {
        self.read_within(FILE_MAX, relative)
            .map_err(|why| WorkspaceError { path: relative.to_owned(), why })
    }

    /// What a path leads to, without opening it: a device may do something when it is opened.
    fn stat(&self, relative: &str) -> Result<FileType, WorkspaceErrorKind> {
        if relative.is_empty() || relative.contains('\0') {
            return Err(WorkspaceErrorKind::Missing);
        }
        let found = self
            .resolver
            .stat(&self.directory, Path::new(relative))
            .map_err(WorkspaceErrorKind::of)?;
        Ok(FileType::from_raw_mode(found.st_mode))
    }

    fn read_within(&self, limit: u64, relative: &str) -> Result<Vec<u8>, WorkspaceErrorKind> {
        if self.stat(relative)? != FileType::RegularFile {
            return Err(WorkspaceErrorKind::NotAFile);
        }
        // It may be something else by now: it is opened so that it cannot block, and looked at again.
        let file = self
            .resolver
            .open(&self.directory, Path::new(relative))
            .map_err(WorkspaceErrorKind::of)?;
        let status = fstat(&file).map_err(WorkspaceErrorKind::of)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(WorkspaceErrorKind::NotAFile);
        }
        if u64::try_from(status.st_size).is_ok_and(|size| size > limit) {
            return Err(WorkspaceErrorKind::TooLarge { limit });
        }
        let mut bytes = Vec::new();
        let read = File::from(file).take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| WorkspaceErrorKind::Unreadable(error.to_string()))?;
        if bytes.len() as u64 > limit {
            return Err(WorkspaceErrorKind::TooLarge { limit });
        }
        Ok(bytes)
    }
}

impl WorkspaceErrorKind {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::XDEV => Self::Escapes,
            Errno::NOENT | Errno::NOTDIR => Self::Missing,
            Errno::NXIO => Self::NotAFile,
            other => Self::Unreadable(io::Error::from(other).to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
