//! Creating a journal, and opening one to go on with it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::line;
use super::lines::Lines;
use super::reading::{Read, Tail, Torn, load};
use super::scan::{Cursor, Rest, Scanned};
use super::{Error, Health, Journal};
use crate::disk::{self, Disk, During as _, Handle, Open, sync_parent};

/// A journal that was opened, and what it holds.
#[derive(Debug)]
pub struct Opened {
    /// To append to.
    pub journal: Journal,
    /// The header.
    pub header: Vec<u8>,
    /// The records, from number 1.
    pub lines: Lines,
    /// The unfinished append that was cut off.
    pub torn: Option<Torn>,
}

impl Journal {
    /// Creates a journal that holds nothing but its header, in a directory that exists.
    ///
    /// A journal whose own creation never finished is created anew.
    pub fn create(disk: Arc<dyn Disk>, path: &Path, header: &[u8]) -> Result<Self, Error> {
        let mut buffer = Vec::new();
        let sum = line::seal(&Cursor::START.sum, header, &mut buffer)?;
        let mut file = match disk.open(path, Open::New) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => unborn(&disk, path)?,
            Err(error) => return Err(error).during("create the journal", path)?,
        };
        let written = file.write_at(0, &buffer).and_then(|()| file.sync());
        written.during("write the journal", path)?;
        sync_parent(disk.as_ref(), path)?;
        let end = Cursor { offset: buffer.len() as u64, seq: 1, sum };
        Ok(Self::at(disk, path, file, end))
    }

    /// Opens a journal to go on with it: cuts a torn tail, and refuses damage.
    ///
    /// Everything it returns is durable, even if whoever wrote it died before the sync, or after a
    /// failed one.
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
                Some(Torn { kept: keep(disk.as_ref(), path, &torn, lines.tail()), ..torn })
            }
        };
        if torn.is_some() {
            file.truncate(end.offset).during("cut the torn end of", path)?;
        }
        let journal = Self::at(disk, path, file, end);
        journal.go_on(header, lines, torn)
    }

    /// Opens a journal that was read before. Where it still ends with the line that it ended with, it is the same
    /// history, and nothing is verified again; what befalls other lines in between is found as late as what befalls
    /// them afterwards.
    pub fn reopen(disk: Arc<dyn Disk>, path: &Path, read: Read) -> Result<Opened, Error> {
        let Read { header, lines, cursor, .. } = read;
        let file = open_existing(disk.as_ref(), path)?;
        let mut journal = Self::at(Arc::clone(&disk), path, file, cursor);
        if journal.ends_with(&last(&header, &lines, cursor)).during("read", path)? {
            return journal.go_on(header, lines, None);
        }
        Self::open(disk, path)
    }

    /// Makes durable what was read.
    fn go_on(mut self, header: Vec<u8>, lines: Lines, torn: Option<Torn>) -> Result<Opened, Error> {
        self.write_last_again(&last(&header, &lines, self.end)).during("write", &self.path)?;
        self.file.sync().during("sync", &self.path)?;
        sync_parent(self.disk.as_ref(), &self.path)?;
        Ok(Opened { journal: self, header, lines, torn })
    }

    /// Writes the last line over itself, so that the next sync writes its pages for certain.
    ///
    /// After a failed sync the page cache may show a line that never reached the disk, and holds it to
    /// be clean; a later crash would then leave a hole before records that were acknowledged.
    fn write_last_again(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.write_at(self.end.offset - line.len() as u64, line)
    }

    /// Whether this line is the last one, and nothing stands after it.
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
    match disk.open(path, Open::Write) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::Missing(path.to_owned()))
        }
        Err(error) => Err(error).during("open", path)?,
    }
}

/// Takes the header from what was read of a whole journal.
pub(super) fn header(scanned: &mut Scanned, path: &Path) -> Result<Vec<u8>, Error> {
    if let Some(header) = scanned.lines.take_header() {
        return Ok(header);
    }
    match Tail::new(scanned.rest, scanned.end, &scanned.lines) {
        Tail::Clean | Tail::Torn(_) => Err(Error::Unborn(path.to_owned())),
        Tail::Damaged(damaged) => Err(Error::Damaged { path: path.to_owned(), damaged }),
    }
}

/// Opens, emptied, a journal whose creation never finished.
fn unborn(disk: &Arc<dyn Disk>, path: &Path) -> Result<Box<dyn Handle>, Error> {
    let mut file = open_existing(disk.as_ref(), path)?;
    let scanned = load(file.as_mut(), path, Cursor::START)?;
    match (scanned.lines.is_empty(), scanned.rest) {
        (true, Rest::Nothing | Rest::Torn) => {
            file.truncate(0).during("empty", path)?;
            Ok(file)
        }
        (true, Rest::Damaged(_)) | (false, _) => Err(Error::Exists(path.to_owned())),
    }
}

/// The last line before `end`, as it stands in the file.
fn last(header: &[u8], lines: &Lines, end: Cursor) -> Vec<u8> {
    let mut line = Vec::new();
    line::write(lines.last().map_or(header, |line| line.body), &end.sum, &mut line);
    line
}

/// Keeps the torn bytes beside the journal. Recovery does not depend on it.
fn keep(disk: &dyn Disk, journal: &Path, torn: &Torn, bytes: &[u8]) -> Option<PathBuf> {
    keep_beside(disk, journal, &format!("journal.torn-{}", torn.seq), bytes).ok()
}

/// Writes `bytes` to a new file beside the journal; a name that is taken gets a number.
pub(super) fn keep_beside(
    disk: &dyn Disk,
    journal: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<PathBuf, disk::Error> {
    let (mut path, mut n) = (journal.with_file_name(name), 1_u64);
    let mut file = loop {
        match disk.open(&path, Open::New) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                n += 1;
                path = journal.with_file_name(format!("{name}.{n}"));
            }
            opened => break opened.during("create", &path)?,
        }
    };
    let written = file.write_at(0, bytes).and_then(|()| file.sync());
    drop(file);
    written.during("write", &path).inspect_err(|_| {
        disk.remove(&path).ok();
    })?;
    sync_parent(disk, &path)?;
    Ok(path)
}
