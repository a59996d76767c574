//! Rewinds a journal to an earlier record. The journal may be damaged after that record.

use std::path::{Path, PathBuf};

use super::line;
use super::open::{open_existing, save_beside};
use super::read::{header, load};
use super::scan::Cursor;
use super::{Error, Journal};
use crate::atomic_file::{self, Durability};
use crate::disk::{self, Disk, During as _};

impl Journal {
    /// Returns the complete lines after record `last`, without verifying them.
    pub fn lines_after(disk: &dyn Disk, path: &Path, last: u64) -> Result<Vec<Vec<u8>>, Error> {
        let bytes = disk::read(disk, path)?;
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        // A line without its newline was never acted on, and the rest of its JSON is missing.
        let whole = lines.filter(|line| line.ends_with(b"\n")).map(<[u8]>::to_vec);
        // The first line is the header.
        let kept = usize::try_from(last).map_or(usize::MAX, |last| last.saturating_add(1));
        Ok(whole.skip(kept).collect())
    }

    /// Keeps the records up to number `last`, moves the rest to `journal.discarded-<last>`, and
    /// appends the record `then`, which records the rewind. Returns the path of the rest, if there
    /// was any.
    ///
    /// The copy is durable before the journal changes, and never replaces an earlier copy.
    /// Discarding and appending are one step: no crash leaves a rewound journal without the record
    /// of the rewind.
    pub fn truncate_to(
        disk: &dyn Disk,
        path: &Path,
        last: u64,
        then: &[u8],
    ) -> Result<Option<PathBuf>, Error> {
        let mut file = open_existing(disk, path)?;
        let mut scanned = load(file.as_mut(), path, Cursor::START)?;
        let header = header(&mut scanned, path)?;
        // Only a verified record can be kept: everything after it is chained to its checksum.
        let good = scanned.end.seq - 1;
        if last > good {
            return Err(Error::NoSuchRecord { path: path.to_owned(), wanted: last, last: good });
        }
        // The record of the rewind is chained to the last kept line, or to the header.
        let sum = match scanned.lines.line(last) {
            Some(line) => line.sum,
            None => line::seal(&Cursor::START.sum, &header, &mut Vec::new())?,
        };
        let mut following = Vec::new();
        line::seal(&sum, then, &mut following)?;
        let kept = usize::try_from(last).map_or(usize::MAX, |n| n);
        let offset = scanned.lines.end_of(kept);
        // Read again, because scanning changes the lines in its buffer.
        let bytes = disk::read_from(file.as_mut(), 0).during("read", path)?;
        let (kept, rest) = bytes.split_at(offset);
        // Saved before the journal changes: a crash in between leaves a copy too many, never a
        // record too few.
        let moved = if rest.is_empty() {
            None
        } else {
            let name = format!("journal.discarded-{last}");
            Some(save_beside(disk, path, &name, rest)?)
        };
        // Replaced, not truncated: a crash must leave the old journal or the new one, never a
        // third.
        atomic_file::write(disk, path, &[kept, &following].concat(), Durability::Durable)?;
        Ok(moved)
    }
}
