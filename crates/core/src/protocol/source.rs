//! The kinds of text that tags are read from.

use serde::{Deserialize, Serialize};

use super::tags::TagName;

/// The origin of a text. Only messages of agents can contain code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The final message of an agent.
    Message,
    /// The standard output of a script.
    Script,
    /// The final message of an iteration of `ralph`, where every tag except `result` is text.
    Iteration,
}

impl Source {
    /// Returns whether a tag counts in a text of this origin.
    pub const fn knows(self, tag: TagName) -> bool {
        match self {
            Self::Message | Self::Script => true,
            Self::Iteration => matches!(tag, TagName::Result),
        }
    }
}
