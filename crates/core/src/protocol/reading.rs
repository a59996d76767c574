//! What an edge read in a text: the values that a decision needs, and no more.

use serde::{Deserialize, Serialize};

use super::tag::{Tag, TagName};

/// Where a text came from; only an agent's message can hold code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The final message of an agent.
    Message,
    /// The standard output of a script.
    Script,
}

/// The tags of one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Well-formed tags that count, in order; at most [`Reading::MOST_TAGS`].
    pub tags: Vec<Tag>,
    /// Well-formed tags beyond that number.
    pub omitted: usize,
    /// Malformed tags, in order; at most [`Reading::MOST_MALFORMED`].
    pub malformed: Vec<Malformed>,
    /// Whether a tag, well formed or not, stood in code and did not count.
    pub in_code: bool,
    /// Attributes that mean nothing on their tag: they warn.
    pub unknown_attributes: Vec<(TagName, String)>,
}

impl Reading {
    /// More tags than any fork may hold are only counted.
    pub const MOST_TAGS: usize = 20_000;
    /// More malformed tags are not explained.
    pub const MOST_MALFORMED: usize = 20;
}

/// A tag that cannot be read, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Malformed {
    /// Which tag it would have been.
    pub tag: TagName,
    /// What is wrong with it, in words for the one who wrote it.
    pub why: String,
}
