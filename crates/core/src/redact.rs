//! Redaction: hides secrets in everything that is shown.
//!
//! A [`Redactor`] hides the values it is given, and everything that has the form of a well-known
//! token. It hides all bytes that any secret covers, so that overlapping secrets leave nothing
//! behind. In a text that was shortened, it also hides the remaining parts of secrets. A
//! [`RedactedStream`] does the same for a text that arrives in pieces: the result does not depend
//! on the pieces, and the stream holds back only what may still become a secret.
//!
//! Where the values come from, and what is shown at all, is decided by the caller.

mod cover;
mod finding;
mod places;
mod shapes;
mod values;

use std::borrow::Cow;

use cover::Cover;
use finding::FindingEnd;

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// Shortest value that is hidden, in bytes. A shorter value is more likely a word than a secret,
/// and hiding a word would damage every text.
const SHORTEST: usize = 8;

#[derive(Debug, Clone)]
pub struct Redactor {
    /// The values, longest first, so that the longest of several matches is hidden.
    secrets: Vec<String>,
    /// The first bytes of all values: most places of a text need no further comparison.
    firsts: [bool; 256],
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new([])
    }
}

impl Redactor {
    /// Creates a redactor for these values and all well-known tokens.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        // A newline at the end of a variable would keep its value from matching.
        let trimmed = secrets.into_iter().map(|secret| secret.trim().to_owned());
        let mut secrets: Vec<String> = trimmed.filter(|secret| secret.len() >= SHORTEST).collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        let mut firsts = [false; 256];
        for secret in &secrets {
            firsts[usize::from(secret.as_bytes()[0])] = true;
        }
        Self { secrets, firsts }
    }

    /// Returns the text without its secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = String::new();
        let mut cover = Cover::default();
        cover.advance(self, text, FindingEnd::Here, &mut shown);
        // Most texts contain no secret and are not copied for the caller.
        if cover.has_hidden() { Cow::Owned(shown) } else { Cow::Borrowed(text) }
    }

    /// Starts to redact a text that arrives in pieces.
    pub fn stream(&self) -> RedactedStream<'_> {
        RedactedStream { redactor: self, cover: Cover::default(), held: String::new(), enough: 0 }
    }
}

/// A text that arrives in pieces.
#[derive(Debug)]
pub struct RedactedStream<'r> {
    redactor: &'r Redactor,
    cover: Cover,
    /// The text that may still become a secret.
    held: String,
    /// The length below which `held` is not examined again. It doubles, so that the total work is
    /// linear even if the text arrives byte by byte.
    enough: usize,
}

impl RedactedStream<'_> {
    /// Takes the next piece, and returns the text that can be shown now.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        if self.held.len() < self.enough { String::new() } else { self.examine(FindingEnd::Later) }
    }

    /// Returns the rest, when nothing follows.
    pub fn finish(mut self) -> String {
        self.examine(FindingEnd::Here)
    }

    fn examine(&mut self, end: FindingEnd) -> String {
        let mut shown = String::new();
        let seen = self.cover.advance(self.redactor, &self.held, end, &mut shown);
        self.held.drain(..seen);
        self.enough = 2 * self.held.len();
        shown
    }
}

#[cfg(test)]
mod tests;
