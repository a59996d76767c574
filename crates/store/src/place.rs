//! A file that appears whole or not at all: written under a temporary name, then renamed.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, During as _, Error, Handle, Open, sync_parent};

/// Names that start so are unfinished files.
const PREFIX: &str = ".temporary-";

/// Whether the file must survive a power cut once it is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Content and name are synced.
    Durable,
    /// It can be derived again: nothing is synced.
    Derived,
}

/// Whether `name` is that of an unfinished file.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Puts a file with content `bytes` at `path`, in place of whatever file was there.
pub(crate) fn place(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<(), Error> {
    let directory = path.parent().unwrap_or(path);
    let mut temporary = Temporary::new(disk, directory)?;
    temporary.write(bytes)?;
    temporary.place(path, durability)
}

/// A file that is removed again unless it is placed.
#[derive(Debug)]
pub(crate) struct Temporary<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    file: Box<dyn Handle>,
    size: u64,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unplaced,
    Placed,
}

impl<'d> Temporary<'d> {
    /// Creates an empty one in `directory`.
    pub(crate) fn new(disk: &'d dyn Disk, directory: &Path) -> Result<Self, Error> {
        let mut n = 0_u64;
        loop {
            let path = directory.join(format!("{PREFIX}{n}"));
            match disk.open(&path, Open::New) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => n += 1,
                opened => {
                    return Ok(Self {
                        disk,
                        file: opened.during("create", &path)?,
                        path,
                        size: 0,
                        fate: Fate::Unplaced,
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

    /// Gives it its name.
    pub(crate) fn place(mut self, path: &Path, durability: Durability) -> Result<(), Error> {
        if durability == Durability::Durable {
            self.file.sync().during("sync", &self.path)?;
        }
        let renamed = self.disk.rename(&self.path, path);
        renamed.during("rename a file to", path)?;
        self.fate = Fate::Placed;
        match durability {
            Durability::Durable => sync_parent(self.disk, path),
            Durability::Derived => Ok(()),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.fate == Fate::Unplaced {
            // Best effort: an unfinished file is never taken for a finished one.
            self.disk.remove(&self.path).ok();
        }
    }
}
