//! The kinds of text that tags are read from.

use super::tag::TagName;

/// Where a text came from; only what an agent says can hold code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The final message of an agent.
    Message,
    /// The standard output of a script.
    Script,
    /// The final message of an iteration of `ralph`: every tag but `result` is text.
    Iteration,
}

impl Source {
    /// Whether such a tag is more than text there.
    pub const fn knows(self, tag: TagName) -> bool {
        match self {
            Self::Message | Self::Script => true,
            Self::Iteration => matches!(tag, TagName::Result),
        }
    }
}
