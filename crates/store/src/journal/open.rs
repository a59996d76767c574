//! Creates a journal, or opens an existing one for appending.
//!
//! Opening verifies every line, removes a torn last line and makes everything durable. Reading
//! without the lock is in `read`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::line;
use super::lines::JournalLines;
use super::read::{ReadJournal, Tail, Torn, header, load};
use super::scan::{Cursor, Rest, Scanned};
use super::{Error, Health, Journal};
use crate::disk::{self, Disk, During as _, Handle, OpenMode, sync_parent};

/// An opened journal and its content.
#[derive(Debug)]
pub struct Opened {
    pub journal: Journal,
    pub header: Vec<u8>,
    /// The records, from number 1.
    pub lines: JournalLines,
    /// The unfinished append that was removed.
    pub torn: Option<Torn>,
}

impl Journal {
    /// Creates a journal that contains only its header. The directory must exist.
    ///
    /// A journal whose creation was interrupted is created again.
    pub fn create(disk: Arc<dyn Disk>, path: &Path, header: &[u8]) -> Result<Self, Error> {
        let mut buffer = Vec::new();
        let sum = line::seal(&Cursor::START.sum, header, &mut buffer)?;
        let mut file = match disk.open(path, OpenMode::New) {
            Ok(file) => file,
            // A crash during an earlier creation may have left an empty or torn file.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                open_unfinished(&disk, path)?
            }
            Err(error) => return Err(error).during("create the journal", path)?,
        };
        let written = file.write_at(0, &buffer).and_then(|()| file.sync());
        written.during("write the journal", path)?;
        // Without this sync the name of the file could be lost, and with it all later records.
        sync_parent(disk.as_ref(), path)?;
        let end = Cursor { offset: buffer.len() as u64, seq: 1, sum };
        Ok(Self::at(disk, path, file, end))
    }

    /// Opens a journal for appending: removes a torn last line, and refuses damage.
    ///
    /// Everything that it returns is durable, even if the process that wrote it died before the
    /// sync or after a failed one.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Opened, Error> {
        let mut file = open_existing(disk.as_ref(), path)?;
        let mut scanned = load(file.as_mut(), path, Cursor::START)?;
        let header = header(&mut scanned, path)?;
        let Scanned { lines, end, rest } = scanned;
        let torn = match Tail::new(rest, end, &lines) {
            Tail::Clean => None,
            Tail::Damaged(damaged) => {
                let path = path.to_owned();
                return Err(Error::Damaged { path, damaged });
            }
            Tail::Torn(torn) => {
                Some(Torn { kept: save_torn(disk.as_ref(), path, &torn, lines.tail()), ..torn })
            }
        };
        if torn.is_some() {
            // The bytes were saved above. The sync in `finish_opening` makes the removal durable.
            file.truncate(end.offset).during("remove the torn end of", path)?;
        }
        let journal = Self::at(disk, path, file, end);
        journal.finish_opening(header, lines, torn)
    }

    /// Opens a journal that was read before. If it still has the same last line, it is the same
    /// history, because checksums are chained, and no line is verified again.
    ///
    /// Damage to earlier lines since then is detected at the next full read, as any later damage
    /// is.
    pub fn reopen(disk: Arc<dyn Disk>, path: &Path, read: ReadJournal) -> Result<Opened, Error> {
        let ReadJournal { header, lines, cursor, .. } = read;
        let file = open_existing(disk.as_ref(), path)?;
        let mut journal = Self::at(Arc::clone(&disk), path, file, cursor);
        // The last line contains a checksum over everything before it, so comparing one line is
        // enough.
        if journal.ends_with(&last_line(&header, &lines, cursor)).during("read", path)? {
            return journal.finish_opening(header, lines, None);
        }
        Self::open(disk, path)
    }

    /// Makes everything that was read durable.
    fn finish_opening(
        mut self,
        header: Vec<u8>,
        lines: JournalLines,
        torn: Option<Torn>,
    ) -> Result<Opened, Error> {
        self.write_last_again(&last_line(&header, &lines, self.end)).during("write", &self.path)?;
        self.file.sync().during("sync", &self.path)?;
        sync_parent(self.disk.as_ref(), &self.path)?;
        Ok(Opened { journal: self, header, lines, torn })
    }

    /// Writes the last line over itself, so that the next sync really writes its pages.
    ///
    /// After a failed sync the page cache may contain a line that never reached the disk, but is
    /// marked as clean. Without this write, a later crash would leave a hole before acknowledged
    /// records.
    fn write_last_again(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.write_at(self.end.offset - line.len() as u64, line)
    }

    /// Returns whether this is the last line, with nothing after it.
    fn ends_with(&mut self, line: &[u8]) -> io::Result<bool> {
        if self.file.size()? != self.end.offset {
            return Ok(false);
        }
        let there = disk::read_from(self.file.as_mut(), self.end.offset - line.len() as u64)?;
        Ok(there == line)
    }

    fn at(disk: Arc<dyn Disk>, path: &Path, file: Box<dyn Handle>, end: Cursor) -> Self {
        Self {
            disk,
            path: path.to_owned(),
            file,
            end,
            ballast: None,
            health: Health::Sound,
            buffer: Vec::new(),
        }
    }
}

pub(super) fn open_existing(disk: &dyn Disk, path: &Path) -> Result<Box<dyn Handle>, Error> {
    match disk.open(path, OpenMode::Write) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::Missing(path.to_owned()))
        }
        Err(error) => Err(error).during("open", path)?,
    }
}

/// Opens a journal whose creation was interrupted, and empties it.
fn open_unfinished(disk: &Arc<dyn Disk>, path: &Path) -> Result<Box<dyn Handle>, Error> {
    let mut file = open_existing(disk.as_ref(), path)?;
    let scanned = load(file.as_mut(), path, Cursor::START)?;
    match (scanned.lines.is_empty(), scanned.rest) {
        (true, Rest::Nothing | Rest::Torn) => {
            file.truncate(0).during("empty", path)?;
            Ok(file)
        }
        // A damaged header may belong to a run with records, so it is never overwritten.
        (true, Rest::Damaged(_)) | (false, _) => Err(Error::Exists(path.to_owned())),
    }
}

/// Returns the last line before `end`, as it is in the file.
fn last_line(header: &[u8], lines: &JournalLines, end: Cursor) -> Vec<u8> {
    let mut line = Vec::new();
    line::write(lines.last().map_or(header, |line| line.body), &end.sum, &mut line);
    line
}

/// Saves the torn bytes beside the journal, for a person to look at. Recovery does not need them,
/// so an error is ignored.
fn save_torn(disk: &dyn Disk, journal: &Path, torn: &Torn, bytes: &[u8]) -> Option<PathBuf> {
    save_beside(disk, journal, &format!("journal.torn-{}", torn.seq), bytes).ok()
}

/// Writes `bytes` to a new file beside the journal. If the name exists, a number is added.
pub(super) fn save_beside(
    disk: &dyn Disk,
    journal: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<PathBuf, disk::Error> {
    let (mut path, mut n) = (journal.with_file_name(name), 1_u64);
    let mut file = loop {
        match disk.open(&path, OpenMode::New) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                n += 1;
                path = journal.with_file_name(format!("{name}.{n}"));
            }
            opened => break opened.during("create", &path)?,
        }
    };
    let written = file.write_at(0, bytes).and_then(|()| file.sync());
    drop(file);
    // A partial copy would look like a complete one.
    written.during("write", &path).inspect_err(|_| {
        disk.remove(&path).ok();
    })?;
    sync_parent(disk, &path)?;
    Ok(path)
}
