//! The result of one rule at one place of a text.

use std::ops::Range;

/// Whether more of the text may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingEnd {
    Here,
    Later,
}

/// The finding at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    Nothing,
    /// The rest of the text decides.
    Undecided,
    /// A secret in these bytes, counted from the place. It continues as long as its tail does.
    Secret(Range<usize>, FindingTail),
    /// The end of a private key, with its length.
    KeyEnds(usize),
}

/// How a secret continues after the bytes that identified it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingTail {
    None,
    /// As long as the bytes can belong to a token.
    Token,
    /// As long as the bytes can belong to credentials in a header.
    Credentials,
    /// Until the last line of the key.
    Key,
}
