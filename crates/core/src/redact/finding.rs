//! What one rule finds at one place of a text.

use std::ops::Range;

/// Whether more of the text may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Here,
    Later,
}

/// What stands at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    Nothing,
    /// It depends on what follows.
    Undecided,
    /// A secret, in these bytes from the place on; it goes on as long as the tail does.
    Secret(Range<usize>, Tail),
    /// The end of a key, which has this length.
    KeyEnds(usize),
}

/// How a secret goes on behind what identified it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    None,
    /// As long as a token would.
    Token,
    /// As long as credentials in a header would.
    Credentials,
    /// Until its last line.
    Key,
}
