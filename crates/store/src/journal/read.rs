//! Reads a journal without its lock, while its owner may be writing.
//!
//! A reader never changes the file. An unfinished last line may be an append in progress, so it is
//! reported as torn but not removed.

use std::io;
use std::path::{Path, PathBuf};

use super::error::Damaged;
use super::lines::JournalLines;
use super::scan::{Cursor, Rest, Scanned, scan};
use super::{Error, Journal};
use crate::disk::{self, Disk, During as _, Handle, OpenMode};

/// The good part of a journal.
#[derive(Debug)]
pub struct ReadJournal {
    pub header: Vec<u8>,
    /// The good records, from number 1.
    pub lines: JournalLines,
    /// The bytes after the good records.
    pub tail: Tail,
    /// The place from which [`Journal::follow`] continues.
    pub cursor: Cursor,
}

/// The bytes after the last good record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tail {
    Clean,
    /// An append that is in progress or was interrupted.
    Torn(Torn),
    /// A record that differs from what was written.
    Damaged(Damaged),
}

/// An unfinished append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The number that the record would have had.
    pub seq: u64,
    /// The offset of the record in the file.
    pub offset: u64,
    /// The number of bytes that were written.
    pub length: u64,
    /// The file with these bytes, after they were removed from the journal.
    pub kept: Option<PathBuf>,
}

impl Tail {
    pub(super) fn new(rest: Rest, end: Cursor, lines: &JournalLines) -> Self {
        let Cursor { seq, offset, .. } = end;
        match rest {
            Rest::Nothing => Self::Clean,
            Rest::Torn => {
                Self::Torn(Torn { seq, offset, length: lines.tail().len() as u64, kept: None })
            }
            Rest::Damaged(damage) => Self::Damaged(Damaged { seq, offset, damage }),
        }
    }
}

impl Journal {
    /// Reads a journal. Records at the end may not be durable yet.
    pub fn read(disk: &dyn Disk, path: &Path) -> Result<ReadJournal, Error> {
        let mut file = open_to_read(disk, path)?;
        let mut scanned = load(file.as_mut(), path, Cursor::START)?;
        let header = header(&mut scanned, path)?;
        let tail = Tail::new(scanned.rest, scanned.end, &scanned.lines);
        Ok(ReadJournal { header, lines: scanned.lines, tail, cursor: scanned.end })
    }

    /// Reads the records that were completed since `cursor`, and moves it behind them.
    pub fn follow(
        disk: &dyn Disk,
        path: &Path,
        cursor: &mut Cursor,
    ) -> Result<JournalLines, Error> {
        let mut file = open_to_read(disk, path)?;
        // Journals only grow. A shorter file was rewound.
        if file.size().during("read", path)? < cursor.offset {
            return Err(Error::Rewound(path.to_owned()));
        }
        let scanned = load(file.as_mut(), path, *cursor)?;
        // A line that does not continue the chain is either damage, or the journal was rewound and
        // has new records at this place. Reading from the start decides.
        if let (Rest::Damaged(damage), true) = (scanned.rest, scanned.lines.is_empty()) {
            return Err(if contains_cursor(file.as_mut(), path, *cursor)? {
                let damaged = Damaged { seq: cursor.seq, offset: cursor.offset, damage };
                let path = path.to_owned();
                Error::Damaged { path, damaged }
            } else {
                Error::Rewound(path.to_owned())
            });
        }
        // A torn rest is not an error here: the owner may be in the middle of an append.
        *cursor = scanned.end;
        Ok(scanned.lines)
    }
}

/// Reads and verifies everything from a cursor on.
pub(super) fn load(
    file: &mut dyn Handle,
    path: &Path,
    from: Cursor,
) -> Result<Scanned, disk::Error> {
    let bytes = disk::read_from(file, from.offset).during("read", path)?;
    Ok(scan(bytes, from))
}

/// Takes the header out of the lines of a whole journal.
pub(super) fn header(scanned: &mut Scanned, path: &Path) -> Result<Vec<u8>, Error> {
    if let Some(header) = scanned.lines.take_header() {
        return Ok(header);
    }
    match Tail::new(scanned.rest, scanned.end, &scanned.lines) {
        // An empty file or half a header: the run was never started.
        Tail::Clean | Tail::Torn(_) => Err(Error::Unborn(path.to_owned())),
        Tail::Damaged(damaged) => Err(Error::Damaged { path: path.to_owned(), damaged }),
    }
}

fn open_to_read(disk: &dyn Disk, path: &Path) -> Result<Box<dyn Handle>, Error> {
    match disk.open(path, OpenMode::Read) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::Missing(path.to_owned()))
        }
        Err(error) => Err(error).during("open", path)?,
    }
}

/// Returns whether the journal, read from its start, still contains the line before `cursor`.
fn contains_cursor(file: &mut dyn Handle, path: &Path, cursor: Cursor) -> Result<bool, Error> {
    let scanned = load(file, path, Cursor::START)?;
    let Some(last) = cursor.seq.checked_sub(1) else {
        return Ok(true);
    };
    let line = scanned.lines.line(last);
    Ok(line.is_some_and(|line| line.sum == cursor.sum))
}
