//! The YAML block at the top of a prompt.
//!
//! [`parse`] never fails: it reads what can be read and names every mistake, with its place. A
//! mistake in one key leaves the others as they are written. Names of states are collected, not
//! resolved: that needs the whole scope.

use std::ops::Range;

use crate::budget::Micros;
use crate::diagnostic::Diagnostic;
use crate::ids::BackendName;
use crate::protocol::TagName;
use crate::time::Span;

use super::policy::Policy;

mod keys;
mod policies;
mod reader;
mod split;
mod yaml;

pub use keys::KEYS;

/// What a state says about itself. Absent keys leave the choice to flags and configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontmatter {
    /// What the state may emit.
    pub policy: Policy,
    /// The model of its turns.
    pub model: Option<String>,
    /// The effort of its turns.
    pub effort: Option<String>,
    /// The backend of its turns.
    pub backend: Option<BackendName>,
    /// The client's permission mode.
    pub permission_mode: Option<String>,
    /// Tools that are allowed beside those of flags and configuration.
    pub allow: Vec<String>,
    /// Tools that are denied; they win.
    pub deny: Vec<String>,
    /// What a denied tool means.
    pub on_denied: OnDenied,
    /// Directories that the client may use.
    pub add_dirs: Vec<String>,
    /// The client's MCP configuration.
    pub mcp_config: Option<String>,
    /// Appended to the client's system prompt.
    pub append_system_prompt: Option<String>,
    /// The longest a turn may take.
    pub timeout: Option<Span>,
    /// The longest a turn may be silent.
    pub idle_timeout: Option<Span>,
    /// How often one agent may enter the state; at least 1.
    pub max_visits: Option<u32>,
    /// Where a transition leads instead when that number is reached; as written.
    pub then: Option<String>,
    /// The cap for all turns of one visit.
    pub budget: Option<Micros>,
    /// One line for screens.
    pub description: Option<String>,
}

/// What a denied tool means for the visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDenied {
    /// A warning.
    #[default]
    Warn,
    /// A reminder.
    Remind,
    /// The end of the agent.
    Fail,
}

/// A prompt, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt<'t> {
    /// What could be read of its frontmatter.
    pub front: Frontmatter,
    /// The text below it.
    pub body: &'t str,
    /// The names of states in it, in order.
    pub mentions: Vec<Mention>,
    /// The keys of its frontmatter, in order.
    pub keys: Vec<Key>,
    /// Its mistakes, in no particular order; they name no file.
    pub diagnostics: Vec<Diagnostic>,
}

/// A key of a frontmatter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// As written.
    pub name: String,
    /// Its bytes in the file.
    pub span: Range<usize>,
}

/// The name of a state in a frontmatter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// As written; it is a name, not a path.
    pub name: String,
    /// Its bytes in the file.
    pub span: Range<usize>,
    /// What it is named for.
    pub role: Role,
}

/// What a state is named for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A policy allows it as the target of this tag.
    Policy(TagName),
    /// A policy allows it as the `return` or `next` of this tag.
    Following(TagName),
    /// A transition beyond `max_visits` goes there.
    Then,
}

/// Reads a prompt: its frontmatter, where there is one, and its body.
pub fn parse(text: &str) -> Prompt<'_> {
    let mut reader = reader::Reader::new(text);
    let (front, body) = match split::split(text) {
        Ok(split) => {
            let block = split.block.map(|span| reader.block(&span));
            (block.unwrap_or_default(), &text[split.body..])
        }
        Err(split::Unclosed(span)) => {
            let message = "the frontmatter is never closed".to_owned();
            let hint = "end it with a line that holds only `---`".to_owned();
            reader.error_with_hint(&span, "frontmatter-unclosed", message, Some(hint));
            (Frontmatter::default(), &text[span.start..])
        }
    };
    let reader::Reader { mentions, keys, diagnostics, .. } = reader;
    Prompt { front, body, mentions, keys, diagnostics }
}

#[cfg(test)]
mod tests;
