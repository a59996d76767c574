//! Walks over the bytes of a text once, and tracks which of them are hidden.
//!
//! All rules are applied at every byte, also inside a secret that was already found, because
//! secrets may overlap. If a rule cannot decide yet, the walk stops there and continues with the
//! next piece.

use super::finding::{FindingEnd, FindingTail, Look};
use std::ops::Range;

use super::{REDACTED, Redactor, places, shapes, values};

/// The tails that continue. Overlapping secrets may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Tails {
    token: bool,
    credentials: bool,
    key: bool,
}

impl Tails {
    fn add(&mut self, tail: FindingTail) {
        match tail {
            FindingTail::None => {}
            FindingTail::Token => self.token = true,
            FindingTail::Credentials => self.credentials = true,
            FindingTail::Key => self.key = true,
        }
    }

    /// Drops the tails that end before this byte, and returns whether any is left.
    fn take(&mut self, byte: u8) -> bool {
        self.token &= shapes::is_token(byte);
        self.credentials &= shapes::is_credentials(byte);
        // No byte ends a key: only its last line does, or the end of a shortened text.
        self.token || self.credentials || self.key
    }
}

/// The position of the walk, and the hidden bytes ahead of it.
#[derive(Debug, Default)]
pub(super) struct Cover {
    /// The byte before the next byte.
    before: Option<u8>,
    /// The number of bytes of the mark directly before the next byte.
    marked: usize,
    /// The number of next bytes that are hidden.
    hidden: usize,
    /// A further hidden range ahead, and its tail.
    ahead: Option<(Range<usize>, FindingTail)>,
    tails: Tails,
    last: Shown,
    any: bool,
}

/// Whether the previous byte was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Shown {
    #[default]
    Yes,
    No,
}

impl Cover {
    pub(super) const fn has_hidden(&self) -> bool {
        self.any
    }

    /// Continues over `text` as far as it is decided, and returns how far that is.
    pub(super) fn advance(
        &mut self,
        redactor: &Redactor,
        text: &str,
        end: FindingEnd,
        shown: &mut String,
    ) -> usize {
        let bytes = text.as_bytes();
        // Visible text is copied in large pieces.
        let mut copied = 0;
        for at in 0..bytes.len() {
            if self.apply_rules(redactor, &bytes[at..], end) == Decided::No {
                self.copy(&bytes[copied..at], shown);
                return at;
            }
            if self.hides(bytes[at]) {
                self.copy(&bytes[copied..at], shown);
                copied = at + 1;
                // Overlapping secrets form one hidden range, which gets one mark.
                if self.last == Shown::Yes {
                    shown.push_str(REDACTED);
                }
                (self.last, self.any) = (Shown::No, true);
            }
            self.leave(bytes[at]);
        }
        self.copy(&bytes[copied..], shown);
        bytes.len()
    }

    fn leave(&mut self, byte: u8) {
        self.before = Some(byte);
        let continues = values::MARK.get(self.marked) == Some(&byte);
        self.marked =
            if continues { self.marked + 1 } else { usize::from(byte == values::MARK[0]) };
    }

    /// Copies visible bytes.
    fn copy(&mut self, piece: &[u8], shown: &mut String) {
        if !piece.is_empty() {
            // Hidden and visible bytes meet at character borders, because secrets are text and
            // tails are ASCII. So nothing is replaced here.
            shown.push_str(&String::from_utf8_lossy(piece));
            self.last = Shown::Yes;
        }
    }

    /// Applies every rule at the first of these bytes.
    fn apply_rules(&mut self, redactor: &Redactor, rest: &[u8], end: FindingEnd) -> Decided {
        let is_cut = self.marked == values::MARK.len();
        let findings = [
            values::value(redactor, rest, end),
            if is_cut { values::ending(redactor, rest, end) } else { Look::Nothing },
            shapes::token(self.before, rest),
            places::place(self.before, rest, end),
        ];
        // At the end of the text, an undecided rule has found nothing.
        if end == FindingEnd::Later && findings.contains(&Look::Undecided) {
            return Decided::No;
        }
        for look in findings {
            match look {
                Look::Secret(bytes, tail) if bytes.start == 0 => {
                    self.tails.add(tail);
                    self.hidden = self.hidden.max(bytes.end);
                }
                // One range is enough. Only headers and addresses look ahead; credentials contain
                // no `:` and an address no space, so neither begins before the other has ended.
                Look::Secret(bytes, tail) => self.ahead = Some((bytes, tail)),
                Look::KeyEnds(length) if self.tails.key => {
                    self.tails.key = false;
                    self.hidden = self.hidden.max(length);
                }
                Look::Nothing | Look::Undecided | Look::KeyEnds(_) => {}
            }
        }
        Decided::Yes
    }

    /// Returns whether the next byte is hidden, and moves past it.
    fn hides(&mut self, byte: u8) -> bool {
        let covered = self.hidden > 0 || self.ahead.as_ref().is_some_and(|(a, _)| a.start == 0);
        let hides = covered || self.tails.take(byte);
        self.hidden = self.hidden.saturating_sub(1);
        match self.ahead.take() {
            Some((ahead, tail)) if ahead.end == 1 => self.tails.add(tail),
            Some((ahead, tail)) => {
                self.ahead = Some((ahead.start.saturating_sub(1)..ahead.end - 1, tail));
            }
            None => {}
        }
        hides
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decided {
    Yes,
    No,
}
