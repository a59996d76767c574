//! What a client said in a turn, for people who read it.
//!
//! It comes out of the same fold that decides how a turn ended. Whoever watches a live turn is told
//! less of it: the signs of [`crate::contract`].

use crate::contract::Progress;

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TranscriptItem {
    /// A text.
    Text {
        /// Who said it.
        by: Speaker,
        /// What.
        text: String,
    },
    /// What a turn ends with, where that was not among its messages.
    Final {
        /// Who said it.
        by: Speaker,
        /// What.
        text: String,
    },
    /// A tool is called.
    Tool {
        /// With what it is called: `Bash(cargo test)`.
        name: String,
    },
    /// A tool answered with an error.
    ToolFailed {
        /// What it said.
        why: String,
    },
    /// A call was denied. The client tells so at the end of its turn.
    Denied {
        /// As permissions name it.
        tool: String,
    },
    /// A request is tried again.
    Retries {
        /// Why.
        why: String,
    },
    /// A line that means nothing here, or could not be read.
    Unread {
        /// What there is to say of it.
        what: String,
    },
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The model, as the agent of the run.
    Agent,
    /// The model, as an agent of its own making.
    Subagent,
    /// The client itself: an error.
    Client,
}

impl TranscriptItem {
    /// What of it somebody is told who watches.
    pub fn progress(&self) -> Option<Progress> {
        match self {
            Self::Text { by: Speaker::Agent, .. } => Some(Progress::Text),
            Self::Tool { name } => Some(Progress::Tool { name: name.clone() }),
            Self::Retries { why } => Some(Progress::Retries { why: why.clone() }),
            Self::Text { by: Speaker::Subagent | Speaker::Client, .. }
            | Self::Final { .. }
            | Self::ToolFailed { .. }
            | Self::Denied { .. }
            | Self::Unread { .. } => None,
        }
    }
}

/// Whether an id that a client gave can be an argument of the next client.
pub(crate) fn is_safe_id(id: &str) -> bool {
    const MAX_LENGTH: usize = 200;
    let graphic = id.bytes().all(|byte| byte.is_ascii_graphic());
    graphic && !id.is_empty() && !id.starts_with('-') && id.len() <= MAX_LENGTH
}
