//! A directory that no path can leave.
//!
//! Files are named by relative paths. A path is resolved from the open directory, by the kernel if
//! it can (`openat2`), otherwise by a walk in this crate. A link, a `..` or a component that is
//! replaced during the resolution is therefore refused if it leads out, even while the tree
//! changes.
//!
//! Only regular files up to [`FILE_MAX`] are read, and a FIFO cannot block. Hard links and mounts
//! are not checked: only the owner of the workspace can create them.

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

/// The largest file that is read, in bytes: 64 MiB.
pub const FILE_MAX: u64 = 64 * 1024 * 1024;

/// An open directory. It stays the same directory even if its path later names another one.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    directory: OwnedFd,
    resolver: PathResolver,
}

/// The error of a directory that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("could not open the workspace {}: {source}", path.display())]
pub struct OpenError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// The error of a path in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not read {path} in the workspace: {why}")]
pub struct WorkspaceError {
    /// The path as it was given.
    pub path: String,
    pub why: WorkspaceErrorKind,
}

/// The kind of a path error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceErrorKind {
    /// The path is absolute, or a `..` or a link leads out.
    #[error("it leads out of the workspace")]
    Escapes,
    #[error("it does not exist")]
    Missing,
    /// The path is a directory, a FIFO, a socket or a device.
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// Another error of the system.
    #[error("{0}")]
    Unreadable(String),
}

impl Workspace {
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let unopened = |source: io::Error| OpenError { path: path.to_owned(), source };
        let absolute = std::path::absolute(path).map_err(unopened)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&absolute, flags, Mode::empty());
        let directory = directory.map_err(|errno| unopened(errno.into()))?;
        Ok(Self { path: absolute, directory, resolver: PathResolver::Kernel })
    }

    /// Returns the absolute path, with its links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that a path currently stays inside. It need not exist.
    pub fn check(&self, relative: &str) -> Result<(), WorkspaceError> {
        let fault = |why| WorkspaceError { path: relative.to_owned(), why };
        match self.stat(relative) {
            Ok(_) | Err(WorkspaceErrorKind::Missing) => Ok(()),
            Err(why) => Err(fault(why)),
        }
    }

    /// Reads a file.
    pub fn read(&self, relative: &str) -> Result<Vec<u8>, WorkspaceError> {
        self.read_within(FILE_MAX, relative)
            .map_err(|why| WorkspaceError { path: relative.to_owned(), why })
    }

    /// Returns the type of a file without opening it, because opening a device may have effects.
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
        // The file may have been replaced since, so it is opened without blocking and checked
        // again.
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
        // One byte more than the limit shows a file that grew since its size was read.
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
            // Opening a socket fails with ENXIO.
            Errno::NXIO => Self::NotAFile,
            other => Self::Unreadable(io::Error::from(other).to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
