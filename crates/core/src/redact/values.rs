//! Values that were given, whole or as far as a cut left them.
//!
//! What is shown was often cut before, where no secret was known: its beginning stands before the
//! mark of the cut, or its end behind it. A few bytes alone are more likely a word.

use super::Redactor;
use crate::redact::finding::{End, Look, Tail};

/// What stands where a text was cut.
pub(super) const MARK: &[u8] = "…".as_bytes();

/// The same, set apart.
const MARK_APART: &[u8] = " …".as_bytes();

/// A shorter part of a secret is shown.
pub(super) const SHORTEST_PART: usize = 6;

/// A value that starts here, the longest one; or the beginning of one that was cut off.
pub(super) fn value(redactor: &Redactor, rest: &[u8], end: End) -> Look {
    if !redactor.firsts[usize::from(rest[0])] {
        return Look::Nothing;
    }
    for secret in redactor.secrets.iter().map(String::as_bytes) {
        let length = rest.iter().zip(secret).take_while(|(a, b)| a == b).count();
        if length == secret.len() {
            return Look::Secret(0..length, Tail::None);
        }
        match cut_off(&rest[length..], end) {
            Cut::Undecided => return Look::Undecided,
            Cut::Here if length >= SHORTEST_PART => return Look::Secret(0..length, Tail::None),
            Cut::Here | Cut::No => {}
        }
    }
    Look::Nothing
}

/// The end of a value, behind a mark: its beginning was cut off.
pub(super) fn ending(redactor: &Redactor, rest: &[u8], end: End) -> Look {
    let mut longest = 0;
    for ending in redactor.secrets.iter().flat_map(|secret| endings(secret)) {
        if rest.starts_with(ending) {
            longest = longest.max(ending.len());
        } else if end == End::Later && ending.starts_with(rest) {
            return Look::Undecided;
        }
    }
    if longest == 0 { Look::Nothing } else { Look::Secret(0..longest, Tail::None) }
}

fn endings(secret: &str) -> impl Iterator<Item = &[u8]> {
    let starts = secret.char_indices().skip(1).map(|(start, _)| &secret.as_bytes()[start..]);
    starts.take_while(|ending| ending.len() >= SHORTEST_PART)
}

enum Cut {
    Here,
    No,
    Undecided,
}

/// Whether a text was cut before this rest of it.
fn cut_off(rest: &[u8], end: End) -> Cut {
    let marks = [MARK, MARK_APART];
    if marks.iter().any(|mark| rest.starts_with(mark)) {
        Cut::Here
    } else if end == End::Later && marks.iter().any(|mark| mark.starts_with(rest)) {
        Cut::Undecided
    } else if rest.is_empty() {
        Cut::Here
    } else {
        Cut::No
    }
}
