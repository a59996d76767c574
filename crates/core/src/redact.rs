//! Secrets, kept out of whatever is shown.
//!
//! A [`Redactor`] hides the values it is given, and whatever has the shape of a well-known token. The
//! bytes that any of them covers are hidden, so secrets that overlap leave no rest behind. Of a text
//! that was cut, the parts of secrets that the cut left are hidden, too. A
//! [`Stream`] does the same for a text that arrives in pieces: wherever it is cut, the outcome is
//! that of the whole text. It holds back only what may still become a secret.
//!
//! Where values come from, and what is shown at all, is decided elsewhere.

mod cover;
mod finding;
mod places;
mod shapes;
mod values;

use std::borrow::Cow;

use cover::Cover;
use finding::End;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// A shorter value is more likely a word than a secret.
const SHORTEST: usize = 8;

/// Hides secrets.
#[derive(Debug, Clone)]
pub struct Redactor {
    /// The longest first.
    secrets: Vec<String>,
    /// The bytes that a secret may start with.
    firsts: [bool; 256],
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new([])
    }
}

impl Redactor {
    /// Hides these values, and all well-known tokens.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
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

    /// The text without its secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = String::new();
        let mut cover = Cover::default();
        cover.advance(self, text, End::Here, &mut shown);
        if cover.has_hidden() { Cow::Owned(shown) } else { Cow::Borrowed(text) }
    }

    /// Hides the secrets of a text that arrives in pieces.
    pub fn stream(&self) -> Stream<'_> {
        Stream { redactor: self, cover: Cover::default(), held: String::new(), enough: 0 }
    }
}

/// A text that arrives in pieces.
#[derive(Debug)]
pub struct Stream<'r> {
    redactor: &'r Redactor,
    cover: Cover,
    /// What may still become a secret.
    held: String,
    /// Before this much is held there is no use in another look: whatever the pieces, the work is
    /// in proportion to the text.
    enough: usize,
}

impl Stream<'_> {
    /// Takes the next piece; what can be shown by now.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        if self.held.len() < self.enough { String::new() } else { self.look(End::Later) }
    }

    /// The rest, now that nothing follows.
    pub fn finish(mut self) -> String {
        self.look(End::Here)
    }

    fn look(&mut self, end: End) -> String {
        let mut shown = String::new();
        let seen = self.cover.advance(self.redactor, &self.held, end, &mut shown);
        self.held.drain(..seen);
        self.enough = 2 * self.held.len();
        shown
    }
}

#[cfg(test)]
mod tests;
