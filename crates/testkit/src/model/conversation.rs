//! The conversation in a request, independent of the API.
//!
//! One item per block, in order. Text that the client adds by itself (`<system-reminder>`) is left
//! out, so that tests compare only what users and models wrote.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    /// A tool call by the model: `NAME {input}`.
    Call,
    /// The output of a tool.
    Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationItem {
    pub role: Role,
    pub text: String,
}

impl ConversationItem {
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into() }
    }

    pub(super) const fn is_from_model(&self) -> bool {
        match self.role {
            Role::Assistant | Role::Call => true,
            Role::User | Role::Outcome => false,
        }
    }
}

/// The parts of a request that a script depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ParsedRequest {
    pub(super) model: String,
    pub(super) system: String,
    pub(super) conversation: Vec<ConversationItem>,
    pub(super) tools: Vec<String>,
    pub(super) form: Form,
}

/// The form of the reply.
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

/// Returns the text without reminders; `None` if nothing else is in it.
pub(super) fn without_reminders(text: &str) -> Option<String> {
    if !text.contains(OPEN) {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        kept.push_str(before);
        // A reminder without an end covers the rest, because its text must never count as a prompt.
        rest = after.split_once(CLOSE).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    (!kept.trim().is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_additions_are_left_out() {
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
