//! One item of a turn, and its lines on a screen.

use raymond_backends::transcript_parser::{Speaker, TranscriptItem};
use raymond_core::text::{excerpt, joined_lines};

use crate::sanitize::sanitized;

/// One item of a turn, such as a text, a tool call or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogItem {
    pub(super) kind: ItemKind,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Prompt,
    Text,
    Subagent,
    Tool,
    Error,
    Denied,
    Stderr,
    Note,
}

impl ItemKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Text => "text",
            Self::Subagent => "subagent",
            Self::Tool => "tool",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Stderr => "stderr",
            Self::Note => "note",
        }
    }

    /// Returns the mark before each line of the item, so that no text can imitate another kind.
    const fn mark(self) -> &'static str {
        match self {
            Self::Prompt => "<",
            Self::Text => "|",
            Self::Subagent => ":",
            Self::Tool => ">",
            Self::Error => "!",
            Self::Denied => "! denied:",
            Self::Stderr => "2|",
            Self::Note => "~",
        }
    }
}

impl LogItem {
    pub(super) fn new(kind: ItemKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Formats the item for a screen: a text completely, other kinds in one line.
    pub(super) fn lines(&self) -> String {
        let mark = self.kind.mark();
        let text = sanitized(self.text.trim_end());
        match self.kind {
            ItemKind::Prompt | ItemKind::Text | ItemKind::Subagent | ItemKind::Stderr => {
                text.lines().flat_map(|line| ["    ", mark, " ", line, "\n"]).collect()
            }
            ItemKind::Tool | ItemKind::Error | ItemKind::Denied | ItemKind::Note => {
                format!("    {mark} {}\n", one_line(&text))
            }
        }
    }
}

impl From<TranscriptItem> for LogItem {
    fn from(said: TranscriptItem) -> Self {
        match said {
            TranscriptItem::Text { by, text } | TranscriptItem::Final { by, text } => {
                let kind = match by {
                    Speaker::Agent => ItemKind::Text,
                    Speaker::Subagent => ItemKind::Subagent,
                    Speaker::Client => ItemKind::Error,
                };
                Self::new(kind, text)
            }
            TranscriptItem::Tool { name } => Self::new(ItemKind::Tool, name),
            TranscriptItem::ToolFailed { why } => Self::new(ItemKind::Error, why),
            TranscriptItem::Denied { tool } => Self::new(ItemKind::Denied, tool),
            TranscriptItem::Retries { why } => {
                Self::new(ItemKind::Note, format!("tries again: {why}"))
            }
            TranscriptItem::Unread { what } => Self::new(ItemKind::Note, what),
        }
    }
}

/// Returns the start of a text in one line.
fn one_line(text: &str) -> String {
    // In characters: two or three lines of a terminal.
    const LONGEST: usize = 200;
    excerpt(&joined_lines(text), LONGEST).into_owned()
}
