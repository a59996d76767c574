//! Readable items of a turn: texts, tool calls, errors.
//!
//! The reader that decides how a turn ended also produces these items. A live display shows only
//! the part that is [`ClientProgress`].

use crate::contract::ClientProgress;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TranscriptItem {
    Text {
        by: Speaker,
        text: String,
    },
    /// The final text of a turn, if it was not among its messages.
    Final {
        by: Speaker,
        text: String,
    },
    Tool {
        /// The tool with its argument: `Bash(cargo test)`.
        name: String,
    },
    ToolFailed {
        why: String,
    },
    /// A denied tool call. Clients report it at the end of the turn.
    Denied {
        /// The call in the form of a permission rule.
        tool: String,
    },
    /// A request is retried.
    Retries {
        why: String,
    },
    /// A line that cannot be interpreted or read.
    Unread {
        what: String,
    },
}

/// The author of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The model, as the agent of the run.
    Agent,
    /// The model, as a subagent that the agent started.
    Subagent,
    /// The client itself, with an error.
    Client,
}

impl TranscriptItem {
    /// Returns the part of the item that a live display shows.
    pub fn progress(&self) -> Option<ClientProgress> {
        match self {
            Self::Text { by: Speaker::Agent, .. } => Some(ClientProgress::Text),
            Self::Tool { name } => Some(ClientProgress::Tool { name: name.clone() }),
            Self::Retries { why } => Some(ClientProgress::Retries { why: why.clone() }),
            Self::Text { by: Speaker::Subagent | Speaker::Client, .. }
            | Self::Final { .. }
            | Self::ToolFailed { .. }
            | Self::Denied { .. }
            | Self::Unread { .. } => None,
        }
    }
}

/// Whether an id from a client is safe as an argument of the next client.
pub(crate) fn is_safe_id(id: &str) -> bool {
    // In bytes. Ids of both clients are UUIDs of 36 bytes; the rest is room for other formats.
    const MAX_LENGTH: usize = 200;
    let graphic = id.bytes().all(|byte| byte.is_ascii_graphic());
    graphic && !id.is_empty() && !id.starts_with('-') && id.len() <= MAX_LENGTH
}
