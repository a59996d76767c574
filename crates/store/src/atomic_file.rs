//! Writes files atomically: under a temporary name first, then renamed.
//!
//! A reader sees the old file, the new file or none, never a part. The temporary name contains the
//! final name, so that the owner of the final file can [`sweep`] away what a killed writer left. If
//! a sweep hits a writer that still lives, the writer tries again.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskErrorKind, During as _, Error, Handle, OpenMode, sync_parent};

/// The beginning of the names of unfinished files.
const PREFIX: &str = ".temporary-";

/// Whether the file must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Content and name are synced.
    Durable,
    /// Nothing is synced, because the file can be derived from other files.
    Derived,
}

/// Returns whether this is the name of an unfinished file.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns the final name of an unfinished file.
fn target(name: &str) -> Option<&str> {
    Some(name.strip_prefix(PREFIX)?.split_once('-')?.1)
}

/// Removes the unfinished files in `directory` for whose final names `is_ours` returns true.
pub(crate) fn sweep(
    disk: &dyn Disk,
    directory: &Path,
    is_ours: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let names = match disk.list(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names.during("list", directory)?,
    };
    for name in names {
        if name.to_str().and_then(target).is_some_and(&is_ours) {
            let path = directory.join(name);
            match disk.remove(&path) {
                // Its writer lives, and has renamed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.during("remove", &path)?,
            }
        }
    }
    Ok(())
}

/// Writes a file atomically, in place of any earlier file.
pub(crate) fn write(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<(), Error> {
    let directory = path.parent().unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let attempt = || {
        let mut temporary = Temporary::new(disk, directory, &name)?;
        temporary.write(bytes)?;
        temporary.persist(path, durability)
    };
    attempt().or_else(|error| match error.kind() {
        // The owner of the directory has swept the temporary file away. Once is enough: an owner
        // sweeps only before its first write.
        DiskErrorKind::Missing => attempt(),
        _ => Err(error),
    })
}

/// A file that is removed when dropped, unless it was persisted.
#[derive(Debug)]
pub(crate) struct Temporary<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    file: Box<dyn Handle>,
    size: u64,
    state: FileState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Unfinished,
    Persisted,
}

impl<'d> Temporary<'d> {
    /// Creates an empty temporary file in `directory`, for a file of this name.
    pub(crate) fn new(disk: &'d dyn Disk, directory: &Path, name: &str) -> Result<Self, Error> {
        let mut n = 0_u64;
        loop {
            // The number comes first, because a name may contain a dash and a number may not.
            let path = directory.join(format!("{PREFIX}{n}-{name}"));
            match disk.open(&path, OpenMode::New) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => n += 1,
                opened => {
                    return Ok(Self {
                        disk,
                        file: opened.during("create", &path)?,
                        path,
                        size: 0,
                        state: FileState::Unfinished,
                    });
                }
            }
        }
    }

    /// Appends `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_at(self.size, bytes);
        self.size += bytes.len() as u64;
        written.during("write", &self.path)
    }

    /// Gives the file its final name.
    pub(crate) fn persist(mut self, path: &Path, durability: Durability) -> Result<(), Error> {
        if durability == Durability::Durable {
            self.file.sync().during("sync", &self.path)?;
        }
        // The content is synced before the rename: otherwise a power cut could leave the final name
        // on an empty file.
        let renamed = self.disk.rename(&self.path, path);
        renamed.during("rename a file to", path)?;
        self.state = FileState::Persisted;
        match durability {
            Durability::Durable => sync_parent(self.disk, path),
            Durability::Derived => Ok(()),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.state == FileState::Unfinished {
            // Errors are ignored: a reader never takes an unfinished file for a finished one.
            self.disk.remove(&self.path).ok();
        }
    }
}
