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
use crate::protocol::source::Source;

/// Which tags count: those outside code, or (when there are none) all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    OutsideCode,
    Everywhere,
}

/// Answers questions about result tags. They must be asked in order; then no part of the text is searched again and
/// again.
#[derive(Debug)]
pub(super) struct Payloads<'a> {
    bytes: &'a [u8],
    source: Source,
    /// Built once: a search is far cheaper than its preparation.
    closes: Finder<'static>,
    openings: Finder<'static>,
    close: Ahead,
}

/// The first close at or after some place, kept while it lies ahead.
#[derive(Debug)]
enum Ahead {
    Unknown,
    At(Range<usize>),
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
            let next = self.closes(from..self.bytes.len()).next();
            self.close = next.map_or(Ahead::Nowhere, Ahead::At);
        }
        match &self.close {
            Ahead::At(close) => Some(close.clone()),
            Ahead::Unknown | Ahead::Nowhere => None,
        }
    }

    /// Whether another opening of `result` stands between `from` and `close`.
    pub(super) fn opens_again(&self, from: usize, close: &Range<usize>) -> bool {
        let payload = &self.bytes[from..close.start];
        let mut starts = self.openings.find_iter(payload);
        starts.any(|start| opening::is_opening(&self.bytes[from + start + 1..]))
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

    /// A further close behind the next opening is of that one, and does no harm.
    fn weigh(&self, close: &Range<usize>, code: &Code) -> Option<usize> {
        let quoted = code.holds(close.start);
        let mut closes = self.closes(close.end..self.next_opening(close.end, code));
        closes.find(|further| quoted || !code.holds(further.start)).map(|further| further.end)
    }

    /// Where the first opening stands outside code at or after `from`, or the end of the text.
    fn next_opening(&self, mut from: usize, code: &Code) -> usize {
        while let Some((opening, _)) = opening::next(self.bytes, from, self.source) {
            if !code.holds(opening) {
                return opening;
            }
            from = opening + 1;
        }
        self.bytes.len()
    }

    /// The closes that start in this part of the text.
    fn closes(&self, part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let starts = self.closes.find_iter(&self.bytes[part.clone()]);
        starts.filter_map(move |offset| {
            let start = part.start + offset;
            Some(start..close_end(self.bytes, start, "result")?)
        })
    }
}

/// Where the closing tag of `name` ends that begins at `start`, if one does.
pub(super) fn close_end(bytes: &[u8], start: usize, name: &str) -> Option<usize> {
    let rest = bytes[start..].strip_prefix(b"</")?;
    let rest = rest.strip_prefix(name.as_bytes())?;
    let spaces = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
    (rest[spaces] == b'>').then_some(start + 2 + name.len() + spaces + 1)
}
