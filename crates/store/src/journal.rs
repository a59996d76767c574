//! The journal of a run: one line per commit, appended and synced before anything acts on it.
//!
//! Only the last line can be torn, because every append is synced before the next one; opening cuts
//! it, keeps its bytes beside the journal, and reports it. Whatever else does not verify is damage,
//! which is named and never repaired in silence. A failed sync is never retried: the journal is
//! poisoned, and only opening it again goes on. What a record means is not known here.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

mod cut;
mod error;
mod line;
mod lines;
mod opening;
mod reading;
mod scan;

pub use error::{Damaged, Error};
pub use line::{BadBody, BadSum, Damage, Sum};
pub use lines::{Line, Lines};
pub use opening::Opened;
pub use reading::{Read, Tail, Torn};
pub use scan::Cursor;

use crate::ballast::Ballast;
use crate::disk::{self, Disk, During as _, Handle, Trouble};
use crate::place::{self, Durability};

/// A journal that is open for appending. Whoever opens it holds the run's lock.
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

/// Whether a journal was where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It was.
    Present,
    /// It had vanished, and was written anew.
    Restored,
}

impl Journal {
    /// Gives up this ballast when the disk is full.
    #[must_use]
    pub fn with_ballast(mut self, ballast: Ballast) -> Self {
        self.ballast = Some(ballast);
        self
    }

    /// The number of the last record; 0 after the header.
    pub fn seq(&self) -> u64 {
        self.end.seq - 1
    }

    /// The sum of the last record.
    pub fn sum(&self) -> Sum {
        self.end.sum
    }

    /// Where the next record goes: what a reader can follow from.
    pub fn end(&self) -> Cursor {
        self.end
    }

    /// Appends a record, one JSON object in one line, and returns its number once it is durable.
    ///
    /// A write that fails is undone and tried once more; the error of the second leaves the journal
    /// as it was. A sync that fails poisons it.
    pub fn append(&mut self, body: &[u8]) -> Result<u64, Error> {
        if self.health == Health::Poisoned {
            return Err(Error::Poisoned(self.path.clone()));
        }
        let sum = line::seal(&self.end.sum, body, &mut self.buffer)?;
        self.check_end()?;
        self.write()
            .or_else(|error| self.write_once_more(error))
            .during("append to", &self.path)?;
        self.sync()?;
        let seq = self.end.seq;
        self.end = Cursor { offset: self.end.offset + self.buffer.len() as u64, seq: seq + 1, sum };
        Ok(seq)
    }

    /// Writes the journal anew when it is no longer where it belongs, as after `rm -r`.
    ///
    /// The open file still has everything. Nothing else of the run's directory is restored.
    pub fn restore(&mut self) -> Result<Presence, Error> {
        if self.health == Health::Poisoned {
            return Err(Error::Poisoned(self.path.clone()));
        }
        if self.file.is_at(&self.path).during("look at", &self.path)? {
            return Ok(Presence::Present);
        }
        let disk = Arc::clone(&self.disk);
        if disk::exists(disk.as_ref(), &self.path)? {
            return Err(Error::Replaced(self.path.clone()));
        }
        let directory = self.path.parent().unwrap_or(&self.path);
        disk::create_dirs_above(disk.as_ref(), directory)?;
        let bytes = disk::read_from(self.file.as_mut(), 0).during("read", &self.path)?;
        place::place(disk.as_ref(), &self.path, &bytes, Durability::Durable)?;
        self.file = opening::open_existing(disk.as_ref(), &self.path)?;
        Ok(Presence::Restored)
    }

    /// Nobody else may have written here: a record over another owner's would destroy both.
    fn check_end(&mut self) -> Result<(), Error> {
        let size = self.file.size().during("look at", &self.path)?;
        if size == self.end.offset {
            return Ok(());
        }
        self.health = Health::Poisoned;
        Err(Error::Touched(self.path.clone()))
    }

    /// Writes the buffer at the end of the file. A failed write is undone.
    fn write(&mut self) -> io::Result<()> {
        let Err(error) = self.file.write_at(self.end.offset, &self.buffer) else {
            return Ok(());
        };
        let undone = self.file.truncate(self.end.offset);
        if undone.and_then(|()| self.file.sync()).is_err() {
            self.health = Health::Poisoned;
        }
        Err(error)
    }

    fn write_once_more(&mut self, error: io::Error) -> io::Result<()> {
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
                self.health = Health::Poisoned;
                // Some file systems notice only now; whoever opens the journal again needs room.
                if may_lack_room(error) {
                    self.make_room();
                }
            })
            .during("sync", &self.path)
            .map_err(Error::from)
    }

    fn make_room(&self) {
        if let Some(ballast) = &self.ballast {
            // If it cannot be freed, the second write says what is wrong.
            ballast.free().ok();
        }
    }
}

/// Whether more room might help; a short write has no better reason.
fn may_lack_room(error: &io::Error) -> bool {
    Trouble::of(error) == Trouble::Full || error.kind() == io::ErrorKind::WriteZero
}
