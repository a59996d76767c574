//! A file that appears whole or not at all: written under a temporary name, then renamed.
//!
//! The temporary name says what the file is to become, so that whoever owns that may [`sweep`] away
//! what a killed writer left. A writer that still lives writes its file anew.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, During as _, Error, Handle, Open, Trouble, sync_parent};

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

/// What the unfinished file of this name was to become.
fn target(name: &str) -> Option<&str> {
    Some(name.strip_prefix(PREFIX)?.split_once('-')?.1)
}

/// Removes the unfinished files in `directory` that were to become one that `is_ours`.
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
                // Its writer lives, and has placed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.during("remove", &path)?,
            }
        }
    }
    Ok(())
}

/// Puts a file with content `bytes` at `path`, in place of whatever file was there.
pub(crate) fn place(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<(), Error> {
    let directory = path.parent().unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let write = || {
        let mut temporary = Temporary::new(disk, directory, &name)?;
        temporary.write(bytes)?;
        temporary.place(path, durability)
    };
    write().or_else(|error| match error.trouble() {
        // Somebody has swept it away meanwhile.
        Trouble::Missing => write(),
        _ => Err(error),
    })
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
    /// Creates an empty one in `directory`, for a file of this name.
    pub(crate) fn new(disk: &'d dyn Disk, directory: &Path, name: &str) -> Result<Self, Error> {
        let mut n = 0_u64;
        loop {
            let path = directory.join(format!("{PREFIX}{n}-{name}"));
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
