//! Finds the given values, complete or shortened.
//!
//! Many texts were shortened before they are shown, by code that does not know the secrets. Then
//! the beginning of a value is before the ellipsis, or its end is after it. A few bytes alone are
//! more likely a word.

use super::Redactor;
use crate::redact::finding::{FindingEnd, FindingTail, Look};

/// The mark that replaces the removed part of a text.
pub(super) const MARK: &[u8] = "…".as_bytes();

/// The mark with a space.
const MARK_APART: &[u8] = " …".as_bytes();

/// Shortest part of a secret that is hidden, in bytes.
pub(super) const SHORTEST_PART: usize = 6;

/// Finds the longest value that starts here, or the beginning of a shortened value.
pub(super) fn value(redactor: &Redactor, rest: &[u8], end: FindingEnd) -> Look {
    if !redactor.firsts[usize::from(rest[0])] {
        return Look::Nothing;
    }
    for secret in redactor.secrets.iter().map(String::as_bytes) {
        let length = rest.iter().zip(secret).take_while(|(a, b)| a == b).count();
        if length == secret.len() {
            return Look::Secret(0..length, FindingTail::None);
        }
        match find_cut(&rest[length..], end) {
            Cut::Undecided => return Look::Undecided,
            Cut::Here if length >= SHORTEST_PART => {
                return Look::Secret(0..length, FindingTail::None);
            }
            Cut::Here | Cut::No => {}
        }
    }
    Look::Nothing
}

/// Finds the end of a value whose beginning was removed, after a mark.
pub(super) fn ending(redactor: &Redactor, rest: &[u8], end: FindingEnd) -> Look {
    let mut longest = 0;
    // Endings of different secrets may overlap: the longest one hides the most.
    for ending in redactor.secrets.iter().flat_map(|secret| endings(secret)) {
        if rest.starts_with(ending) {
            longest = longest.max(ending.len());
        } else if end == FindingEnd::Later && ending.starts_with(rest) {
            return Look::Undecided;
        }
    }
    if longest == 0 { Look::Nothing } else { Look::Secret(0..longest, FindingTail::None) }
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

/// Returns whether the text was shortened at this place.
fn find_cut(rest: &[u8], end: FindingEnd) -> Cut {
    let marks = [MARK, MARK_APART];
    if marks.iter().any(|mark| rest.starts_with(mark)) {
        Cut::Here
    } else if end == FindingEnd::Later && marks.iter().any(|mark| mark.starts_with(rest)) {
        Cut::Undecided
    // The text ends inside a secret, so it was probably shortened without a mark.
    } else if rest.is_empty() {
        Cut::Here
    } else {
        Cut::No
    }
}
