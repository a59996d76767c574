//! Space that is set aside while there is plenty, and given up when the disk is full.
//!
//! An outcome that was paid for must still be recorded on a full disk. Whoever meets that disk frees
//! the ballast and tries once more; it is filled again when there is room.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::memory::splitmix;
use crate::disk::{self, Disk, During as _, Handle, Metadata, Open};

/// How many bytes are set aside.
pub const SIZE: u64 = 1024 * 1024;

/// The ballast file of one `.raymond/`.
#[derive(Debug, Clone)]
pub struct Ballast {
    disk: Arc<dyn Disk>,
    path: PathBuf,
}

/// What freeing the ballast gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// There is room again.
    Room,
    /// There was no ballast left.
    Nothing,
}

impl Ballast {
    /// The ballast at `path`; nothing is written yet.
    pub fn new(disk: Arc<dyn Disk>, path: PathBuf) -> Self {
        Self { disk, path }
    }

    /// Sets the space aside unless that was done. On a full disk nothing is left behind.
    pub fn fill(&self) -> Result<(), disk::Error> {
        if matches!(self.disk.metadata(&self.path), Ok(Metadata::File(SIZE))) {
            return Ok(());
        }
        let opened = self.disk.open(&self.path, Open::Create);
        let mut file = opened.during("create", &self.path)?;
        let written = write(file.as_mut()).and_then(|()| file.sync());
        drop(file);
        written.during("fill", &self.path).inspect_err(|_| {
            self.disk.remove(&self.path).ok();
        })
    }

    /// Gives the space up.
    pub fn free(&self) -> Result<Freed, disk::Error> {
        match self.disk.remove(&self.path).during("remove", &self.path) {
            Ok(()) => Ok(Freed::Room),
            Err(error) if error.trouble() == disk::Trouble::Missing => Ok(Freed::Nothing),
            Err(error) => Err(error),
        }
    }
}

/// Writes bytes that a file system cannot compress away, little by little: memory is not set aside.
fn write(file: &mut dyn Handle) -> io::Result<()> {
    let mut state = 0;
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
        assert_eq!(error.trouble(), disk::Trouble::Full);
        assert_eq!(memory.used(), 0);
    }
}
