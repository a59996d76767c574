//! The verified lines of a journal, in one buffer.
//!
//! The bodies are slices of the buffer into which the file was read: a long journal is not copied
//! line by line.

use std::iter::FusedIterator;

use super::line::{SUFFIX, Sum, sum};

/// Consecutive records.
#[derive(Clone, Default)]
pub struct JournalLines {
    buffer: Vec<u8>,
    /// The number of the first line. `start` is its offset in the buffer.
    first: u64,
    start: usize,
    /// The end of each line in the buffer, after its newline.
    ends: Vec<usize>,
}

/// One record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JournalLine<'l> {
    /// The number of the record. The header has 0.
    pub seq: u64,
    /// The JSON object as it was appended.
    pub body: &'l [u8],
    pub sum: Sum,
}

impl JournalLines {
    /// Takes a buffer whose lines `line::open` has verified. They end at `ends`.
    pub(super) fn new(buffer: Vec<u8>, first: u64, ends: Vec<usize>) -> Self {
        Self { buffer, first, start: 0, ends }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the record with this number.
    pub fn line(&self, seq: u64) -> Option<JournalLine<'_>> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        (index < self.ends.len()).then(|| self.at(index))
    }

    pub fn last(&self) -> Option<JournalLine<'_>> {
        self.ends.len().checked_sub(1).map(|index| self.at(index))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = JournalLine<'_>> + FusedIterator {
        (0..self.ends.len()).map(|index| self.at(index))
    }

    /// Returns the records after the one with this number.
    pub fn after(&self, seq: u64) -> impl Iterator<Item = JournalLine<'_>> {
        let skip = (seq + 1).saturating_sub(self.first);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        (skip..self.ends.len()).map(|index| self.at(index))
    }

    /// Removes the first line, and returns its body.
    pub(super) fn take_header(&mut self) -> Option<Vec<u8>> {
        let header = self.line(self.first)?.body.to_vec();
        // The buffer stays as it is: only the start moves behind the header.
        self.start = self.ends.remove(0);
        self.first += 1;
        Some(header)
    }

    /// Returns the bytes after the last line.
    pub(super) fn tail(&self) -> &[u8] {
        &self.buffer[self.end_of(self.ends.len())..]
    }

    /// Returns the offset in the buffer at which the line with this index starts.
    pub(super) fn end_of(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(self.start, |last| self.ends[last])
    }

    fn at(&self, index: usize) -> JournalLine<'_> {
        // `line::open` has put the last brace of the body where the checksum begins.
        let line = &self.buffer[self.end_of(index)..self.ends[index] - 1];
        JournalLine {
            seq: self.first + index as u64,
            body: &line[..=line.len() - SUFFIX],
            sum: sum(line),
        }
    }
}

impl std::fmt::Debug for JournalLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl std::fmt::Debug for JournalLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.seq, String::from_utf8_lossy(self.body))
    }
}
