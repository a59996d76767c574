//! Finds tokens by their prefixes.
//!
//! Their values are not known, because an agent may print keys that Raymond never received. A
//! prefix alone is not enough: words such as `sk-learn-contrib-packages` must stay readable.

use super::values::{MARK, SHORTEST_PART};
use crate::redact::finding::{FindingTail, Look};

/// A kind of token: a prefix at the start of a word, followed by enough bytes.
struct Shape {
    prefix: &'static [u8],
    /// The minimum number of bytes after the prefix, and the bytes that are allowed there.
    least: usize,
    of: fn(u8) -> bool,
    /// The minimum number of digits or capitals among them, so that `sk-learn-contrib-packages`
    /// does not match.
    mixed: usize,
}

const fn shape(prefix: &'static str, least: usize, of: fn(u8) -> bool) -> Shape {
    Shape { prefix: prefix.as_bytes(), least, of, mixed: 0 }
}

// The lengths are lower bounds of the vendors' formats: `AKIA` and 16 more is an AWS key id, `AIza`
// and 35 more a Google key, `npm_` and 36 more an npm token.
const SHAPES: [Shape; 18] = [
    shape("sk-ant-", 16, is_token),
    Shape { mixed: 3, ..shape("sk-", 20, is_token) },
    shape("ghp_", 20, is_word),
    shape("gho_", 20, is_word),
    shape("ghu_", 20, is_word),
    shape("ghs_", 20, is_word),
    shape("ghr_", 20, is_word),
    shape("github_pat_", 20, is_word),
    shape("glpat-", 20, is_token),
    shape("xoxa-", 10, is_token),
    shape("xoxb-", 10, is_token),
    shape("xoxp-", 10, is_token),
    shape("xoxr-", 10, is_token),
    shape("xoxs-", 10, is_token),
    shape("AKIA", 16, is_capital),
    shape("ASIA", 16, is_capital),
    shape("AIza", 35, is_token),
    Shape { mixed: 3, ..shape("npm_", 36, is_word) },
];

/// The first bytes of all prefixes: most places of a text need no further comparison.
const FIRSTS: [bool; 256] = {
    let mut firsts = [false; 256];
    let mut next = 0;
    while next < SHAPES.len() {
        firsts[SHAPES[next].prefix[0] as usize] = true;
        next += 1;
    }
    firsts
};

/// Returns whether a byte can belong to a token.
pub(super) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns whether a byte can belong to credentials in a header.
pub(super) const fn is_credentials(byte: u8) -> bool {
    is_token(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=')
}

/// Returns whether a byte can belong to a word.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

const fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// Counts digits and capitals.
pub(super) fn mixed(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| is_capital(**byte)).count()
}

/// Finds a token that starts here.
pub(super) fn token(before: Option<u8>, rest: &[u8]) -> Look {
    // Inside a word a prefix is chance: `task-…` does not begin a token `sk-…`.
    if !FIRSTS[usize::from(rest[0])] || before.is_some_and(is_word) {
        return Look::Nothing;
    }
    let mut found = Look::Nothing;
    for shape in &SHAPES {
        match shape.look(rest) {
            Look::Nothing => {}
            Look::Undecided => found = Look::Undecided,
            secret @ (Look::Secret(..) | Look::KeyEnds(_)) => return secret,
        }
    }
    found
}

impl Shape {
    fn look(&self, rest: &[u8]) -> Look {
        let Some(behind) = rest.strip_prefix(self.prefix) else {
            let begins = self.prefix.starts_with(rest);
            return if begins { Look::Undecided } else { Look::Nothing };
        };
        let length = behind.iter().take(self.least).take_while(|byte| (self.of)(**byte)).count();
        let is_cut = length >= SHORTEST_PART && behind[length..].starts_with(MARK);
        if length < self.least.min(behind.len()) && !is_cut {
            Look::Nothing
        } else if length < self.least && !is_cut {
            Look::Undecided
        } else if mixed(&behind[..length]) < self.mixed {
            Look::Nothing
        } else {
            Look::Secret(0..self.prefix.len() + length, FindingTail::Token)
        }
    }
}
