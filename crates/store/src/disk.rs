//! The port to files: the few primitive operations that everything else is made of.
//!
//! Two implementations: [`Files`], the real thing, and [`Memory`], a model that forgets what was not
//! synced and fails on request. A write is durable after [`Handle::sync`]; a name is durable after
//! [`Disk::sync_dir`] of its directory. Neither implies the other.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

mod files;
pub mod memory;

pub use files::Files;
pub use memory::Memory;

/// Where files live. Paths are absolute.
pub trait Disk: Debug + Send + Sync {
    /// Opens the file at `path`.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn Handle>>;
    /// What is at `path`; links are followed.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// The names in a directory, sorted.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;
    /// Creates one directory, whose parent exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;
    /// Gives a file a new name, atomically, in place of whatever file had that name. The real disk
    /// does the same with a directory, whose new name is free.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file or an empty directory.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Whether a link is at `path`, where a disk knows such a thing.
    fn is_link(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }
    /// A link in a directory, if there is one.
    fn link_in(&self, _directory: &Path) -> io::Result<Option<OsString>> {
        Ok(None)
    }
    /// The number of the user whom `path` belongs to, or what it leads to, when that is neither this
    /// user nor root, and a disk knows users.
    fn foreign_owner(&self, _path: &Path) -> io::Result<Option<u32>> {
        Ok(None)
    }
    /// Lets its owner list and change a directory, where a disk knows such a thing.
    fn make_dir_writable(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// An open file. It stays usable when its name is gone.
pub trait Handle: Debug + Send {
    /// Reads at most `buffer.len()` bytes from `offset`; 0 is the end of the file.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`. After an error any part of them may have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// How many bytes the file has.
    fn size(&self) -> io::Result<u64>;
    /// Makes the file `size` bytes long.
    fn truncate(&mut self, size: u64) -> io::Result<()>;
    /// Makes content and size durable. After an error the dirty data may be gone for good, although
    /// it can still be read: never retried.
    fn sync(&mut self) -> io::Result<()>;
    /// Whether `path` still leads to this very file.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
    /// Takes the exclusive lock of the file, until the handle is dropped or its process ends.
    fn try_lock(&self) -> Result<(), TryLockError>;
}

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Open {
    /// An existing file, to read.
    Read,
    /// An existing file, to read and write.
    Write,
    /// A file that must not exist yet, to read and write.
    New,
    /// A file to read and write, which is created when it does not exist.
    Create,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metadata {
    /// A file of that many bytes.
    File(u64),
    /// A directory.
    Directory,
}

/// A disk operation that failed: what was attempted, and where.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt} {}: {}", path.display(), self.kind())]
pub struct Error {
    /// What was attempted: `append to`, `create`.
    pub attempt: &'static str,
    /// On what.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl Error {
    /// The kind of trouble, as far as a person can do something about it.
    pub fn kind(&self) -> DiskErrorKind {
        DiskErrorKind::of(&self.source)
    }
}

/// What stands in the way of a disk operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiskErrorKind {
    /// No space, or no quota, is left.
    #[error("the disk is full")]
    Full,
    /// The file system does not take writes.
    #[error("the file system is read-only")]
    ReadOnly,
    /// The permissions forbid it.
    #[error("permission denied")]
    Denied,
    /// There is no such file or directory.
    #[error("not found")]
    Missing,
    /// It is a link, and nothing is written through one.
    #[error("it is a link")]
    Link,
    /// It belongs to this user, who is neither ours nor root.
    #[error("it belongs to another user ({0})")]
    OtherUser(u32),
    /// Something else, which the source names.
    #[error("input/output error")]
    Other,
}

impl DiskErrorKind {
    /// The kind of `error`.
    pub fn of(error: &io::Error) -> Self {
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

/// What this crate refuses by itself, as an error of the disk.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(DiskErrorKind);

pub(crate) fn refused(trouble: DiskErrorKind) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, Refused(trouble))
}

/// Adds to an [`io::Error`] what was attempted.
pub(crate) trait During<T> {
    /// Says that `attempt` on `path` was under way.
    fn during(self, attempt: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, attempt: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error { attempt, path: path.to_owned(), source })
    }
}

/// Whether something is at `path`.
pub(crate) fn exists(disk: &dyn Disk, path: &Path) -> Result<bool, Error> {
    match disk.metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).during("look at", path),
    }
}

/// The whole content of the file at `path`.
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, Error> {
    let mut file = disk.open(path, Open::Read).during("open", path)?;
    read_from(file.as_mut(), 0).during("read", path)
}

/// How much is read at once.
const READ_BYTES: usize = 1 << 20;

/// Everything from `offset` to the end of a file.
pub(crate) fn read_from(file: &mut dyn Handle, offset: u64) -> io::Result<Vec<u8>> {
    let expected = file.size()?.saturating_sub(offset);
    let expected = usize::try_from(expected).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    // A file may claim any size: there is an error when it is more than this machine has.
    bytes.try_reserve_exact(expected).map_err(io::Error::other)?;
    while bytes.len() < expected {
        let filled = bytes.len();
        bytes.resize(expected.min(filled + READ_BYTES), 0);
        match file.read_at(offset + filled as u64, &mut bytes[filled..])? {
            0 => {
                bytes.truncate(filled);
                break;
            }
            n => bytes.truncate(filled + n),
        }
    }
    Ok(bytes)
}

/// Creates the directories `paths` and whatever is missing above them, below `base`.
///
/// Every name on the way is synced even if it was there: whoever created it may have died before. A
/// link on the way is refused: whoever put it there chose where we write.
pub(crate) fn create_dirs(disk: &dyn Disk, base: &Path, paths: &[&Path]) -> Result<(), Error> {
    let all = paths.iter().flat_map(|path| path.ancestors().take_while(|above| *above != base));
    // What lies above comes first.
    let missing: BTreeSet<&Path> = all.collect();
    for directory in &missing {
        match disk.create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).during("create the directory", directory);
            }
            Err(_) if disk.is_link(directory).during("look at", directory)? => {
                return Err(refused(DiskErrorKind::Link)).during("write into", directory);
            }
            Ok(()) | Err(_) => {}
        }
    }
    let changed: BTreeSet<&Path> = missing.iter().filter_map(|created| created.parent()).collect();
    changed.into_iter().try_for_each(|directory| sync_dir(disk, directory))
}

/// Creates the directory `path` and whatever is missing above it, wherever that begins.
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
        assert!(read(&Files, &path).unwrap() == content);
        let mut file = Files.open(&path, Open::Read).unwrap();
        for (offset, expected) in [(2, &content[2..]), (READ_BYTES, b"tail"), (READ_BYTES + 9, b"")] {
            let found = read_from(file.as_mut(), offset as u64).unwrap();
            assert!(found == expected, "from {offset}");
        }
    }

    #[test]
    fn a_disk_that_knows_no_users_has_no_strangers() {
        assert_eq!(Memory::new(0).foreign_owner(Path::new("/")).unwrap(), None);
    }
}
