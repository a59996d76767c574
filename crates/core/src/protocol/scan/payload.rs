//! Finds the close of a `result` or an `ask`, and decides whether its payload is certain.
//!
//! The payload is raw. The first close after an opening ends it, in code or not, because the
//! payload may contain half a code block. The payload is uncertain if a second opening precedes
//! that close, or if a further close follows it before any other opening. Code decides which closes
//! are *further* ones: after a close outside code, closes in code do not count; after a close
//! inside code, which may be a quotation, every close counts.

use std::ops::Range;

use memchr::memmem::Finder;

use super::code::Code;
use super::opening;
use crate::protocol::source::Source;
use crate::protocol::tags::TagName;

/// The tags that count: those outside code, or all if there are none outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    OutsideCode,
    Everywhere,
}

/// Answers questions about the tags of one name. The questions must come in the order of the text,
/// so that no part is searched again and again.
#[derive(Debug)]
pub(super) struct Payloads<'a> {
    bytes: &'a [u8],
    source: Source,
    name: TagName,
    /// Built once, because preparing a search costs far more than a search.
    closes: Finder<'static>,
    openings: Finder<'static>,
    close: Ahead,
}

/// The first close at or after some place, kept until the scan has passed it.
#[derive(Debug)]
enum Ahead {
    Unknown,
    At(Range<usize>),
    Nowhere,
}

impl<'a> Payloads<'a> {
    pub(super) fn new(bytes: &'a [u8], source: Source, name: TagName) -> Self {
        let finder = |opening: &str| Finder::new(&format!("{opening}{name}")).into_owned();
        Self {
            bytes,
            source,
            name,
            closes: finder("</"),
            openings: finder("<"),
            close: Ahead::Unknown,
        }
    }

    /// Returns the first close at or after `from`.
    pub(super) fn close(&mut self, from: usize) -> Option<Range<usize>> {
        let stale = match &self.close {
            Ahead::Unknown => true,
            Ahead::At(close) => close.start < from,
            // Questions come in the order of the text: without a close after an earlier place,
            // there is none after this one.
            Ahead::Nowhere => false,
        };
        if stale {
            let next = self.closes(from..self.bytes.len()).next();
            self.close = next.map_or(Ahead::Nowhere, Ahead::At);
        }
        match &self.close {
            Ahead::At(close) => Some(close.clone()),
            Ahead::Unknown | Ahead::Nowhere => None,
        }
    }

    /// Returns whether another opening of the tag is between `from` and `close`.
    pub(super) fn opens_again(&self, from: usize, close: &Range<usize>) -> bool {
        let payload = &self.bytes[from..close.start];
        let mut starts = self.openings.find_iter(payload);
        starts.any(|start| opening::is_opening(&self.bytes[from + start + 1..]))
    }

    /// Returns the end of a further close that makes `close` uncertain.
    pub(super) fn further_close(
        &self,
        close: &Range<usize>,
        code: &Code,
        counting: Counting,
    ) -> Option<usize> {
        match counting {
            Counting::OutsideCode => self.find_further_close(close, code),
            // If tags in code count, so do their openings and closes: no place is code then.
            Counting::Everywhere => self.find_further_close(close, &Code::default()),
        }
    }

    /// Looks for a further close up to the next opening.
    fn find_further_close(&self, close: &Range<usize>, code: &Code) -> Option<usize> {
        let quoted = code.holds(close.start);
        // A close after the next opening belongs to that opening.
        let mut closes = self.closes(close.end..self.next_opening(close.end, code));
        closes.find(|further| quoted || !code.holds(further.start)).map(|further| further.end)
    }

    /// Returns the first opening outside code at or after `from`, or the end of the text.
    fn next_opening(&self, mut from: usize, code: &Code) -> usize {
        while let Some((opening, _)) = opening::next(self.bytes, from, self.source) {
            if !code.holds(opening) {
                return opening;
            }
            from = opening + 1;
        }
        self.bytes.len()
    }

    /// Returns the closes that start in this part of the text.
    fn closes(&self, part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let starts = self.closes.find_iter(&self.bytes[part.clone()]);
        starts.filter_map(move |offset| {
            let start = part.start + offset;
            Some(start..close_end(self.bytes, start, self.name.as_str())?)
        })
    }
}

/// Returns the end of the closing tag of `name` that begins at `start`, if there is one.
pub(super) fn close_end(bytes: &[u8], start: usize, name: &str) -> Option<usize> {
    let rest = bytes[start..].strip_prefix(b"</")?;
    let rest = rest.strip_prefix(name.as_bytes())?;
    let spaces = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
    // `</results>` closes nothing: after the name, only white space may precede the `>`.
    (rest[spaces] == b'>').then_some(start + 2 + name.len() + spaces + 1)
}
