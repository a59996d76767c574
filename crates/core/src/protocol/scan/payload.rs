//! The closes of `result`, whose payload is raw: what ends it, and what makes it uncertain.
//!
//! The first close after an opening ends the payload, in code or not, because the payload may hold
//! half a code block. The payload is uncertain when a second opening stands before that close, or a
//! further close stands after it before any other opening. Code counts there too: after a close
//! outside code, tags in code are text; a close inside code may have been quoted, so any further
//! close casts doubt on it.

use std::ops::Range;

use memchr::memmem::Finder;

use super::code::Code;
use super::opening;
use crate::protocol::reading::Source;

/// Which tags count: those outside code, or (when there are none) all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    OutsideCode,
    Everywhere,
}

/// Answers questions about result tags; each kind of question must be asked in order, and then no
/// part of the text is searched again.
#[derive(Debug)]
pub(super) struct Payloads<'a> {
    bytes: &'a [u8],
    source: Source,
    /// Built once: a search is far cheaper than its preparation.
    closes: Finder<'static>,
    openings: Finder<'static>,
    close: Ahead<Range<usize>>,
    opening: Ahead<usize>,
}

/// The first hit at or after some place, kept while it lies ahead.
#[derive(Debug)]
enum Ahead<T> {
    Unknown,
    At(T),
    Nowhere,
}

impl<'a> Payloads<'a> {
    pub(super) fn new(bytes: &'a [u8], source: Source) -> Self {
        Self {
            bytes,
            source,
            closes: Finder::new("</result"),
            openings: Finder::new("<result"),
            close: Ahead::Unknown,
            opening: Ahead::Unknown,
        }
    }

    /// The first close at or after `from`.
    pub(super) fn close(&mut self, from: usize) -> Option<Range<usize>> {
        let stale = match &self.close {
            Ahead::Unknown => true,
            Ahead::At(close) => close.start < from,
            Ahead::Nowhere => false,
        };
        if stale {
            self.close = self.close_after(from).map_or(Ahead::Nowhere, Ahead::At);
        }
        match &self.close {
            Ahead::At(close) => Some(close.clone()),
            Ahead::Unknown | Ahead::Nowhere => None,
        }
    }

    /// Whether another opening of `result` stands between `from` and `close`.
    pub(super) fn opens_again(&mut self, from: usize, close: &Range<usize>) -> bool {
        let stale = match self.opening {
            Ahead::Unknown => true,
            Ahead::At(opening) => opening < from,
            Ahead::Nowhere => false,
        };
        if stale {
            self.opening = self.opening_after(from).map_or(Ahead::Nowhere, Ahead::At);
        }
        matches!(self.opening, Ahead::At(opening) if opening < close.start)
    }

    /// Where a further close ends that casts doubt on `close`.
    pub(super) fn further_close(
        &self,
        close: &Range<usize>,
        code: &Code,
        counting: Counting,
    ) -> Option<usize> {
        match counting {
            Counting::OutsideCode => self.weigh(close, code),
            Counting::Everywhere => self.weigh(close, &Code::default()),
        }
    }

    fn weigh(&self, close: &Range<usize>, code: &Code) -> Option<usize> {
        let quoted = code.holds(close.start);
        let mut further = self.close_after(close.end)?;
        while !quoted && code.holds(further.start) {
            further = self.close_after(further.end)?;
        }
        let between = &self.bytes[..further.start];
        let mut at = close.end;
        while let Some((opening, _)) = opening::next(between, at, self.source) {
            if !code.holds(opening) {
                return None;
            }
            at = opening + 1;
        }
        Some(further.end)
    }

    fn close_after(&self, from: usize) -> Option<Range<usize>> {
        let mut starts = self.closes.find_iter(&self.bytes[from..]);
        starts.find_map(|offset| {
            let start = from + offset;
            let end = close_end(self.bytes, start, "result")?;
            Some(start..end)
        })
    }

    fn opening_after(&self, from: usize) -> Option<usize> {
        let mut starts = self.openings.find_iter(&self.bytes[from..]);
        starts
            .find(|offset| opening::is_opening(&self.bytes[from + offset + 1..]))
            .map(|offset| from + offset)
    }
}

/// Where the closing tag of `name` ends that begins at `start`, if one does.
pub(super) fn close_end(bytes: &[u8], start: usize, name: &str) -> Option<usize> {
    let rest = bytes[start..].strip_prefix(b"</")?;
    let rest = rest.strip_prefix(name.as_bytes())?;
    let spaces = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
    (rest[spaces] == b'>').then_some(start + 2 + name.len() + spaces + 1)
}
