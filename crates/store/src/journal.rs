//! The journal of a run: one line per commit, appended and synced before anything acts on it.
//!
//! Only the last line can be torn, because every append is synced before the next one. Opening
//! removes a torn line, saves its bytes beside the journal and reports it. Every other line that
//! does not verify is damage, which is reported and never repaired silently. A failed sync is never
//! retried: the journal is poisoned, and must be opened again. The meaning of records is in
//! `raymond_core::run`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

mod error;
mod line;
mod lines;
mod open;
mod read;
mod rewind;
mod scan;

pub use error::{Damaged, Error};
pub use line::{BadBody, BadSum, Damage, Sum};
pub use lines::{JournalLine, JournalLines};
pub use open::Opened;
pub use read::{ReadJournal, Tail, Torn};
pub use scan::Cursor;

use crate::atomic_file::{self, Durability};
use crate::ballast::Ballast;
use crate::disk::{self, Disk, DiskErrorKind, During as _, Handle};

/// A journal that is open for appending. The caller holds the lock of the run.
#[derive(Debug)]
pub struct Journal {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Box<dyn Handle>,
    end: Cursor,
    ballast: Option<Ballast>,
    health: Health,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Sound,
    Poisoned,
}

/// Whether the file of a journal still existed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Present,
    /// The file had vanished and was written again.
    Restored,
}

impl Journal {
    /// Frees this ballast when the disk is full.
    #[must_use]
    pub fn with_ballast(mut self, ballast: Ballast) -> Self {
        self.ballast = Some(ballast);
        self
    }

    /// Returns the number of the last record, or 0 after the header.
    pub fn seq(&self) -> u64 {
        self.end.seq - 1
    }

    /// Returns the checksum of the last record.
    pub fn sum(&self) -> Sum {
        self.end.sum
    }

    /// Returns the place of the next record, from which a reader can follow.
    pub fn end(&self) -> Cursor {
        self.end
    }

    /// Appends a record, one JSON object in one line, and returns its number after it is durable.
    ///
    /// A failed write is undone and tried once more. If the second write fails too, the journal is
    /// as it was. A failed sync poisons the journal.
    pub fn append(&mut self, body: &[u8]) -> Result<u64, Error> {
        if self.health == Health::Poisoned {
            return Err(Error::Poisoned(self.path.clone()));
        }
        // A body that cannot be a record is refused before the file is touched.
        let sum = line::seal(&self.end.sum, body, &mut self.buffer)?;
        self.check_end()?;
        self.write()
            .or_else(|error| self.write_once_more(error))
            .during("append to", &self.path)?;
        self.sync()?;
        // Only now does the record count: the chain continues from it.
        let seq = self.end.seq;
        self.end = Cursor { offset: self.end.offset + self.buffer.len() as u64, seq: seq + 1, sum };
        Ok(seq)
    }

    /// Writes the journal again if its file was deleted, as by `rm -r`.
    ///
    /// The open file still contains everything. Nothing else in the directory is restored.
    pub fn restore(&mut self) -> Result<Presence, Error> {
        if self.health == Health::Poisoned {
            return Err(Error::Poisoned(self.path.clone()));
        }
        if self.file.is_at(&self.path).during("look at", &self.path)? {
            return Ok(Presence::Present);
        }
        let disk = Arc::clone(&self.disk);
        // Another file at this path may belong to a new run of the same name: never overwrite it.
        if disk::exists(disk.as_ref(), &self.path)? {
            return Err(Error::Replaced(self.path.clone()));
        }
        let directory = self.path.parent().unwrap_or(&self.path);
        disk::create_dirs_above(disk.as_ref(), directory)?;
        let bytes = disk::read_from(self.file.as_mut(), 0).during("read", &self.path)?;
        atomic_file::write(disk.as_ref(), &self.path, &bytes, Durability::Durable)?;
        // The old handle leads to the deleted file: records appended to it would be lost.
        self.file = open::open_existing(disk.as_ref(), &self.path)?;
        Ok(Presence::Restored)
    }

    /// Checks that no other process has written to the journal: a record on top of another owner's
    /// record would destroy both.
    fn check_end(&mut self) -> Result<(), Error> {
        let size = self.file.size().during("look at", &self.path)?;
        if size == self.end.offset {
            return Ok(());
        }
        // Poisoned, because this process no longer knows which records are in the file.
        self.health = Health::Poisoned;
        Err(Error::ChangedByOther(self.path.clone()))
    }

    /// Writes the buffer at the end of the file. A failed write is undone.
    fn write(&mut self) -> io::Result<()> {
        let Err(error) = self.file.write_at(self.end.offset, &self.buffer) else {
            return Ok(());
        };
        // A part of the line may be in the file. It is removed and the removal synced, so that the
        // next append does not follow half a line.
        let undone = self.file.truncate(self.end.offset);
        if undone.and_then(|()| self.file.sync()).is_err() {
            self.health = Health::Poisoned;
        }
        Err(error)
    }

    fn write_once_more(&mut self, error: io::Error) -> io::Result<()> {
        // The first write could not be undone: another one would follow half a line.
        if self.health == Health::Poisoned {
            return Err(error);
        }
        if may_lack_room(&error) {
            self.make_room();
        }
        self.write()
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.file
            .sync()
            .inspect_err(|error| {
                // Never retried: the kernel may have dropped the pages and marked them as clean, so
                // a second sync would succeed without writing them.
                self.health = Health::Poisoned;
                // Some file systems report a full disk only at the sync. The journal is poisoned,
                // but the next owner needs room to open it.
                if may_lack_room(error) {
                    self.make_room();
                }
            })
            .during("sync", &self.path)
            .map_err(Error::from)
    }

    fn make_room(&self) {
        if let Some(ballast) = &self.ballast {
            // If freeing fails, the second write fails too and reports the reason.
            ballast.free().ok();
        }
    }
}

/// Returns whether more room might help. `WriteZero` is a short write, which has no other likely
/// reason.
fn may_lack_room(error: &io::Error) -> bool {
    DiskErrorKind::of(error) == DiskErrorKind::Full || error.kind() == io::ErrorKind::WriteZero
}
