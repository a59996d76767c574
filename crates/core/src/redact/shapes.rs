//! Tokens that are known by how they begin.

use super::values::{MARK, SHORTEST_PART};
use crate::redact::finding::{Look, Tail};

/// A kind of token: a prefix at the start of a word, and enough behind it.
struct Shape {
    prefix: &'static [u8],
    /// How many bytes follow at least, and of which kind.
    least: usize,
    of: fn(u8) -> bool,
    /// How many of them are digits or capitals, so that `sk-learn-contrib-packages` is none.
    mixed: usize,
}

const fn shape(prefix: &'static str, least: usize, of: fn(u8) -> bool) -> Shape {
    Shape { prefix: prefix.as_bytes(), least, of, mixed: 0 }
}

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

/// The bytes that tokens start with: most of a text is none of them.
const FIRSTS: [bool; 256] = {
    let mut firsts = [false; 256];
    let mut next = 0;
    while next < SHAPES.len() {
        firsts[SHAPES[next].prefix[0] as usize] = true;
        next += 1;
    }
    firsts
};

/// What tokens are made of.
pub(super) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// What credentials in a header are made of.
pub(super) const fn is_credentials(byte: u8) -> bool {
    is_token(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=')
}

/// What words are made of.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

const fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// How many of these bytes are digits or capitals.
pub(super) fn mixed(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| is_capital(**byte)).count()
}

/// A token that starts here.
pub(super) fn token(before: Option<u8>, rest: &[u8]) -> Look {
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
            Look::Secret(0..self.prefix.len() + length, Tail::Token)
        }
    }
}
