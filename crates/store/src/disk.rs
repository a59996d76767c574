//! The interface to files: the few primitive operations that all other modules use.
//!
//! There are two implementations: [`RealDisk`] is the real disk, and [`Memory`] is a model that
//! forgets everything that was not synced and fails on request. A write is durable after
//! [`Handle::sync`]. A name is durable after [`Disk::sync_dir`] of its directory. Neither implies
//! the other.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

mod files;
pub mod memory;

pub use files::RealDisk;
pub use memory::Memory;

/// A disk. Paths are absolute.
pub trait Disk: Debug + Send + Sync {
    /// Opens the file at `path`.
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn Handle>>;
    /// Returns what is at `path`. Links are followed.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// Returns the names in a directory, sorted.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;
    /// Creates one directory, whose parent exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;
    /// Renames a file atomically, in place of any file with the new name. The real disk also
    /// renames directories, if the new name is free.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file or an empty directory.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Returns whether a link is at `path`. A disk without links returns false.
    fn is_link(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }
    /// Returns the name of a link in a directory, if there is one.
    fn link_in(&self, _directory: &Path) -> io::Result<Option<OsString>> {
        Ok(None)
    }
    /// Returns the id of the user who owns `path` or its target, if that is neither this user nor
    /// root. A disk without users returns `None`.
    fn foreign_owner(&self, _path: &Path) -> io::Result<Option<u32>> {
        Ok(None)
    }
    /// Returns whether every user may create files in a directory.
    fn is_open_to_all(&self, _directory: &Path) -> io::Result<bool> {
        Ok(false)
    }
    /// Returns when the file at `path` was written, in milliseconds since 1970. A link is not
    /// followed and has no time. A disk without times returns `None`.
    fn written_at(&self, _path: &Path) -> io::Result<Option<u64>> {
        Ok(None)
    }
    /// Gives the owner of a directory the permission to list and change it.
    fn make_dir_writable(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// An open file. It stays usable after its name is removed.
pub trait Handle: Debug + Send {
    /// Reads at most `buffer.len()` bytes from `offset`. Returns 0 at the end of the file.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`. After an error any part of them may have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Returns the size of the file in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Makes the file `size` bytes long.
    fn truncate(&mut self, size: u64) -> io::Result<()>;
    /// Makes content and size durable. Callers never retry after an error: the unwritten data may
    /// be lost although it can still be read, and a second sync would succeed without writing it.
    fn sync(&mut self) -> io::Result<()>;
    /// Returns whether `path` still leads to this file.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
    /// Takes the exclusive lock of the file, until the handle is dropped or its process ends.
    fn try_lock(&self) -> Result<(), TryLockError>;
}

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenMode {
    /// An existing file, to read.
    Read,
    /// An existing file, to read and write.
    Write,
    /// A file that must not exist yet, to read and write.
    New,
    /// A file to read and write, which is created if it does not exist.
    Create,
}

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metadata {
    /// A file, with its size in bytes.
    File(u64),
    /// A directory.
    Directory,
}

/// A failed disk operation.
#[derive(Debug, thiserror::Error)]
#[error("could not {attempt} {}: {}", path.display(), self.kind())]
pub struct Error {
    /// The operation as a verb, such as `append to` or `create`.
    pub attempt: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl Error {
    /// Returns the kind of error, as far as a user can do something about it.
    pub fn kind(&self) -> DiskErrorKind {
        DiskErrorKind::of(&self.source)
    }
}

/// The kinds of failures of a disk operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiskErrorKind {
    /// The disk or the quota of the user is full.
    #[error("the disk is full")]
    Full,
    #[error("the file system is read-only")]
    ReadOnly,
    #[error("permission denied")]
    Denied,
    #[error("not found")]
    Missing,
    /// The path is a link. Raymond never writes through a link.
    #[error("it is a link")]
    Link,
    /// The file belongs to another user, with this id.
    #[error("it belongs to another user ({0})")]
    OtherUser(u32),
    /// Another error, which the source describes.
    #[error("input/output error")]
    Other,
}

impl DiskErrorKind {
    /// Returns the kind of `error`.
    pub fn of(error: &io::Error) -> Self {
        // Refusals of this crate travel inside an `io::Error`, because the interface has no other
        // type.
        if let Some(refused) = error.get_ref().and_then(|inner| inner.downcast_ref::<Refused>()) {
            return refused.0;
        }
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::PermissionDenied => Self::Denied,
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Other,
        }
    }
}

/// A refusal of this crate, wrapped as an error of the disk.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(DiskErrorKind);

pub(crate) fn refused(trouble: DiskErrorKind) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, Refused(trouble))
}

/// Adds the attempted operation to an [`io::Error`].
pub(crate) trait During<T> {
    /// Adds the operation and the path to an error.
    fn during(self, attempt: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, attempt: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error { attempt, path: path.to_owned(), source })
    }
}

/// Returns whether something is at `path`.
pub(crate) fn exists(disk: &dyn Disk, path: &Path) -> Result<bool, Error> {
    match disk.metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).during("look at", path),
    }
}

/// Reads the whole file at `path`.
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, Error> {
    let mut file = disk.open(path, OpenMode::Read).during("open", path)?;
    read_from(file.as_mut(), 0).during("read", path)
}

/// The most bytes per read, so that a file that shrinks does not leave a huge buffer of zeros.
const READ_BYTES: usize = 1 << 20;

/// Reads a file from `offset` to its end.
pub(crate) fn read_from(file: &mut dyn Handle, offset: u64) -> io::Result<Vec<u8>> {
    let expected = file.size()?.saturating_sub(offset);
    let expected = usize::try_from(expected).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    // A sparse file may claim any size. Without `try_reserve` a size beyond the memory of this
    // machine would abort the process.
    bytes.try_reserve_exact(expected).map_err(io::Error::other)?;
    while bytes.len() < expected {
        let filled = bytes.len();
        bytes.resize(expected.min(filled + READ_BYTES), 0);
        match file.read_at(offset + filled as u64, &mut bytes[filled..])? {
            // The file became shorter while it was read.
            0 => {
                bytes.truncate(filled);
                break;
            }
            n => bytes.truncate(filled + n),
        }
    }
    Ok(bytes)
}

/// Creates the directories `paths` and the missing directories above them, below `base`.
///
/// Every name on the way is synced, even an existing one: the process that created it may have died
/// before the sync. A link on the way is refused, because its author would choose where Raymond
/// writes.
pub(crate) fn create_dirs(disk: &dyn Disk, base: &Path, paths: &[&Path]) -> Result<(), Error> {
    let all = paths.iter().flat_map(|path| path.ancestors().take_while(|above| *above != base));
    // A sorted set: parents come before their children.
    let missing: BTreeSet<&Path> = all.collect();
    for directory in &missing {
        match disk.create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).during("create the directory", directory);
            }
            // The directory exists. If it is a link, everything below it would be written
            // elsewhere.
            Err(_) if disk.is_link(directory).during("look at", directory)? => {
                return Err(refused(DiskErrorKind::Link)).during("write into", directory);
            }
            Ok(()) | Err(_) => {}
        }
    }
    // Each parent is synced once, after all its new names exist.
    let changed: BTreeSet<&Path> = missing.iter().filter_map(|created| created.parent()).collect();
    changed.into_iter().try_for_each(|directory| sync_dir(disk, directory))
}

/// Creates the directory `path` and all missing directories above it.
pub(crate) fn create_dirs_above(disk: &dyn Disk, path: &Path) -> Result<(), Error> {
    for base in path.ancestors() {
        if exists(disk, base)? {
            return create_dirs(disk, base, &[path]);
        }
    }
    Ok(())
}

/// Makes the name of `path` durable.
pub(crate) fn sync_parent(disk: &dyn Disk, path: &Path) -> Result<(), Error> {
    sync_dir(disk, path.parent().unwrap_or(path))
}

/// Makes the names in `directory` durable.
pub(crate) fn sync_dir(disk: &dyn Disk, directory: &Path) -> Result<(), Error> {
    disk.sync_dir(directory).during("sync the directory", directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_read_in_pieces() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let content = ["x".repeat(READ_BYTES), "tail".to_owned()].concat().into_bytes();
        std::fs::write(&path, &content).unwrap();
        assert!(read(&RealDisk, &path).unwrap() == content);
        let mut file = RealDisk.open(&path, OpenMode::Read).unwrap();
        for (offset, expected) in [(2, &content[2..]), (READ_BYTES, b"tail"), (READ_BYTES + 9, b"")]
        {
            let found = read_from(file.as_mut(), offset as u64).unwrap();
            assert!(found == expected, "from {offset}");
        }
    }

    #[test]
    fn disk_without_users_has_no_foreign_owner() {
        assert_eq!(Memory::new(0).foreign_owner(Path::new("/")).unwrap(), None);
    }
}
