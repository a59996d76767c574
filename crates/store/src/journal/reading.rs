//! Reading a journal without its lock, while its owner may be writing.

use std::io;
use std::path::{Path, PathBuf};

use super::error::Damaged;
use super::lines::Lines;
use super::opening::header;
use super::scan::{Cursor, Rest, Scanned, scan};
use super::{Error, Journal};
use crate::disk::{self, Disk, During as _, Handle, Open};

/// What a journal holds, as far as it is good.
#[derive(Debug)]
pub struct Read {
    /// The header.
    pub header: Vec<u8>,
    /// The good records, from number 1.
    pub lines: Lines,
    /// What stands after them.
    pub tail: Tail,
    /// From where [`Journal::follow`] goes on.
    pub cursor: Cursor,
}

/// What stands after the last good record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Clean,
    /// An append that is under way, or never finished.
    Torn(Torn),
    /// A record that is not what was written.
    Damaged(Damaged),
}

/// An unfinished append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The number that the record would have had.
    pub seq: u64,
    /// Where it starts in the file.
    pub offset: u64,
    /// How many bytes are there.
    pub length: u64,
    /// Where they were kept when they were cut off.
    pub kept: Option<PathBuf>,
}

impl Tail {
    pub(super) fn new(rest: Rest, end: Cursor, lines: &Lines) -> Self {
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
    /// Reads a journal and changes nothing. Records at the end may not be durable yet.
    pub fn read(disk: &dyn Disk, path: &Path) -> Result<Read, Error> {
        let mut file = open_to_read(disk, path)?;
        let mut scanned = load(file.as_mut(), path, Cursor::START)?;
        let header = header(&mut scanned, path)?;
        let tail = Tail::new(scanned.rest, scanned.end, &scanned.lines);
        Ok(Read { header, lines: scanned.lines, tail, cursor: scanned.end })
    }

    /// Reads the records that were completed since `cursor`, and moves it behind them.
    pub fn follow(disk: &dyn Disk, path: &Path, cursor: &mut Cursor) -> Result<Lines, Error> {
        let mut file = open_to_read(disk, path)?;
        if file.size().during("read", path)? < cursor.offset {
            return Err(Error::Rewound(path.to_owned()));
        }
        let scanned = load(file.as_mut(), path, *cursor)?;
        if let (Rest::Damaged(damage), true) = (scanned.rest, scanned.lines.is_empty()) {
            return Err(if passes(file.as_mut(), path, *cursor)? {
                let damaged = Damaged { seq: cursor.seq, offset: cursor.offset, damage };
                let path = path.to_owned();
                Error::Damaged { path, damaged }
            } else {
                Error::Rewound(path.to_owned())
            });
        }
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

fn open_to_read(disk: &dyn Disk, path: &Path) -> Result<Box<dyn Handle>, Error> {
    match disk.open(path, Open::Read) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::Missing(path.to_owned()))
        }
        Err(error) => Err(error).during("open", path)?,
    }
}

/// Whether the journal, read from its start, still goes through `cursor`.
fn passes(file: &mut dyn Handle, path: &Path, cursor: Cursor) -> Result<bool, Error> {
    let scanned = load(file, path, Cursor::START)?;
    let Some(last) = cursor.seq.checked_sub(1) else {
        return Ok(true);
    };
    let line = scanned.lines.line(last);
    Ok(line.is_some_and(|line| line.sum == cursor.sum))
}
