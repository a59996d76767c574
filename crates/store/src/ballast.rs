//! A file that reserves space while the disk has room, and is deleted when the disk is full.
//!
//! The outcome of a turn is already paid for, so it must be recorded even on a full disk. A writer
//! that finds the disk full frees the ballast and tries once more. The next owner of a run fills it
//! again.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::memory::splitmix;
use crate::disk::{self, Disk, During as _, Handle, Metadata, OpenMode};

/// The size of the ballast in bytes. Records are mostly a few kilobytes and contain no text over 16
/// KiB, so one megabyte is enough for the outcomes of many turns.
pub const SIZE: u64 = 1024 * 1024;

/// The ballast file of one `.raymond/`.
#[derive(Debug, Clone)]
pub struct Ballast {
    disk: Arc<dyn Disk>,
    path: PathBuf,
}

/// The result of freeing the ballast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// The disk has room again.
    Room,
    /// There was no ballast.
    Nothing,
}

impl Ballast {
    /// Returns the ballast at `path`. Nothing is written yet.
    pub fn new(disk: Arc<dyn Disk>, path: PathBuf) -> Self {
        Self { disk, path }
    }

    /// Reserves the space, unless that is done already. On a full disk no file is left behind.
    pub fn fill(&self) -> Result<(), disk::Error> {
        // A file of another size may have been left by a process that died while filling it.
        if matches!(self.disk.metadata(&self.path), Ok(Metadata::File(SIZE))) {
            return Ok(());
        }
        // Not written atomically: a partial ballast still reserves its bytes, and the next call
        // completes it.
        let opened = self.disk.open(&self.path, OpenMode::Create);
        let mut file = opened.during("create", &self.path)?;
        let written = write(file.as_mut()).and_then(|()| file.sync());
        drop(file);
        written.during("fill", &self.path).inspect_err(|_| {
            self.disk.remove(&self.path).ok();
        })
    }

    /// Frees the space.
    pub fn free(&self) -> Result<Freed, disk::Error> {
        match self.disk.remove(&self.path).during("remove", &self.path) {
            Ok(()) => Ok(Freed::Room),
            Err(error) if error.kind() == disk::DiskErrorKind::Missing => Ok(Freed::Nothing),
            Err(error) => Err(error),
        }
    }
}

/// Fills the file with random bytes: a file system that compresses would reserve nothing for zeros.
fn write(file: &mut dyn Handle) -> io::Result<()> {
    let mut state = 0;
    // 16 KiB at a time, so that filling does not need a megabyte of memory.
    let mut piece = [0; 16 * 1024];
    (0..SIZE).step_by(piece.len()).try_for_each(|at| {
        for word in piece.as_chunks_mut().0 {
            *word = splitmix(&mut state).to_le_bytes();
        }
        file.write_at(at, &piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Memory;

    #[test]
    fn ballast_is_freed_once_and_filled_again() {
        let memory = Memory::new(0);
        let ballast = Ballast::new(Arc::new(memory.clone()), "/ballast".into());
        assert_eq!(ballast.free().unwrap(), Freed::Nothing);
        ballast.fill().unwrap();
        ballast.fill().unwrap();
        assert_eq!(memory.used(), SIZE);
        assert_eq!(ballast.free().unwrap(), Freed::Room);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn ballast_that_does_not_fit_leaves_nothing_behind() {
        let memory = Memory::new(0);
        memory.set_capacity(Some(SIZE - 1));
        let ballast = Ballast::new(Arc::new(memory.clone()), "/ballast".into());
        let error = ballast.fill().unwrap_err();
        assert_eq!(error.kind(), disk::DiskErrorKind::Full);
        assert_eq!(memory.used(), 0);
    }
}
