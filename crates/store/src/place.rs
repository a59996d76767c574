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
<<<<<<< HEAD
    temporary.place(path, durability).map(drop)
=======
    temporary.place(path, durability)
>>>>>>> store
}

/// A file that is removed again unless it is placed.
#[derive(Debug)]
pub(crate) struct Temporary<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
<<<<<<< HEAD
    file: Option<Box<dyn Handle>>,
    size: u64,
=======
    file: Box<dyn Handle>,
    size: u64,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unplaced,
    Placed,
>>>>>>> store
}

impl<'d> Temporary<'d> {
    /// Creates an empty one in `directory`.
    pub(crate) fn new(disk: &'d dyn Disk, directory: &Path) -> Result<Self, Error> {
<<<<<<< HEAD
        for n in 0_u64.. {
            let path = directory.join(format!("{PREFIX}{n}"));
            match disk.open(&path, Open::New) {
                Ok(file) => {
                    return Ok(Self {
                        disk,
                        path,
                        file: Some(file),
                        size: 0,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).during("create a file in", directory),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into()).during("create a file in", directory)
=======
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
>>>>>>> store
    }

    /// Appends `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
<<<<<<< HEAD
        let written = match &mut self.file {
            Some(file) => file.write_at(self.size, bytes),
            None => Ok(()),
        };
        written.during("write", &self.path)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Gives it its name, and returns the open file.
    pub(crate) fn place(
        mut self,
        path: &Path,
        durability: Durability,
    ) -> Result<Box<dyn Handle>, Error> {
        let gone = || io::Error::other("the file was placed already");
        let file = self.file.as_mut().ok_or_else(gone);
        let file = file.during("write", path)?;
        if durability == Durability::Durable {
            file.sync().during("sync", path)?;
        }
        self.disk
            .rename(&self.path, path)
            .during("rename to", path)?;
        let file = self.file.take().ok_or_else(gone).during("write", path)?;
        if durability == Durability::Durable {
            sync_parent(self.disk, path)?;
        }
        Ok(file)
=======
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
>>>>>>> store
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
<<<<<<< HEAD
        if self.file.take().is_some() {
            // Best effort: what stays is swept when its directory is next used.
=======
        if self.fate == Fate::Unplaced {
            // Best effort: an unfinished file is never taken for a finished one.
>>>>>>> store
            self.disk.remove(&self.path).ok();
        }
    }
}
