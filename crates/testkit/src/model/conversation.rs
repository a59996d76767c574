//! What a request shows the model, whatever API it came through.
//!
//! One entry per block, in order. What the client adds on its own account (`<system-reminder>`) is
//! left out, so that a test compares what people and models said.

use serde::Serialize;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A prompt.
    User,
    /// The model.
    Assistant,
    /// The model, calling a tool: `NAME {input}`.
    Call,
    /// What a tool said.
    Outcome,
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationItem {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub text: String,
}

impl ConversationItem {
    /// An entry.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into() }
    }

    /// Whether the model said it.
    pub(super) const fn is_from_model(&self) -> bool {
        match self.role {
            Role::Assistant | Role::Call => true,
            Role::User | Role::Outcome => false,
        }
    }
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ParsedRequest {
    pub(super) model: String,
    pub(super) system: String,
    pub(super) conversation: Vec<ConversationItem>,
    pub(super) tools: Vec<String>,
    pub(super) form: Form,
}

/// How the reply is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Form {
    /// One JSON value.
    #[default]
    Whole,
    /// Server-sent events.
    Stream,
}

const OPEN: &str = "<system-reminder>";
const CLOSE: &str = "</system-reminder>";

/// The text without what the client added; none when nothing else was in it.
pub(super) fn without_reminders(text: &str) -> Option<String> {
    if !text.contains(OPEN) {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        kept.push_str(before);
        rest = after.split_once(CLOSE).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    (!kept.trim().is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_adds_is_left_out() {
        let check = |text: &str, kept: Option<&str>| {
            assert_eq!(without_reminders(text).as_deref(), kept, "{text:?}");
        };
        check("a\n", Some("a\n"));
        check("", None);
        check("<system-reminder>x</system-reminder>\n", None);
        check("<system-reminder>x</system-reminder>a<system-reminder>y", Some("a"));
        check("a <system-reminder>x</system-reminder>b", Some("a b"));
    }
}
