//! Frontmatter: the YAML block at the top of a prompt.
//!
//! [`parse`] never fails: it reads what it can, and reports every mistake with its place. A mistake
//! in one key does not affect the others. Names of states are collected but not resolved, because
//! that needs the whole scope.

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

pub use keys::KEYS;

/// The code of a mistake about an unknown key.
pub(super) const UNKNOWN_KEY: &str = "unknown-key";

/// The settings of a state. An absent key leaves the choice to flags and configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontmatter {
    /// The transitions that the state may emit.
    pub policy: Policy,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub backend: Option<BackendName>,
    pub permission_mode: Option<String>,
    /// Tools that are allowed in addition to those of flags and configuration.
    pub allow: Vec<String>,
    /// Tools that are denied. They override `allow`.
    pub deny: Vec<String>,
    /// What to do when the client denies a tool.
    pub on_denied: OnDenied,
    /// Additional directories that the client may use.
    pub add_dirs: Vec<String>,
    /// The client's MCP configuration.
    pub mcp_config: Option<String>,
    /// Text that is appended to the client's system prompt.
    pub append_system_prompt: Option<String>,
    /// The time limit of a turn.
    pub timeout: Option<Span>,
    /// The limit of the time without output.
    pub idle_timeout: Option<Span>,
    /// How often one agent may enter the state, at least 1.
    pub max_visits: Option<u32>,
    /// The state that a transition enters instead once `max_visits` is reached, as written.
    pub then: Option<String>,
    /// The budget for all turns of one visit.
    pub budget: Option<Micros>,
    /// A description of one line.
    pub description: Option<String>,
}

/// What to do when the client denies a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDenied {
    #[default]
    Warn,
    Remind,
    /// The agent fails.
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPrompt<'t> {
    /// The readable part of its frontmatter.
    pub front: Frontmatter,
    /// The text below the frontmatter.
    pub body: &'t str,
    /// The names of states in the frontmatter, in order.
    pub mentions: Vec<Mention>,
    /// The keys of the frontmatter, in order.
    pub keys: Vec<FrontmatterKey>,
    /// The mistakes, unsorted and without a file name.
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontmatterKey {
    pub name: String,
    /// The bytes in the file.
    pub span: Range<usize>,
}

/// The name of a state in a frontmatter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// As written. It is a valid file name.
    pub name: String,
    /// The bytes in the file.
    pub span: Range<usize>,
    pub role: Role,
}

/// The role of a name in a frontmatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A policy allows it as the target of this tag.
    Policy(TagName),
    /// A policy allows it as the `return` or `next` of this tag.
    Following(TagName),
    /// A transition enters it once `max_visits` is reached.
    Then,
}

/// Parses a prompt into its frontmatter, if there is one, and its body.
pub fn parse(text: &str) -> ParsedPrompt<'_> {
    let mut reader = reader::Reader::new(text);
    let (front, body) = match split::split(text) {
        Ok(split) => {
            if let (None, Some(span)) = (&split.block, split::misplaced(text)) {
                let message = "frontmatter has to begin on the first line, with `---`".to_owned();
                let hint = "move it to the top; if it is text for the agent, indent it".to_owned();
                reader.error_with_hint(&span, "frontmatter-misplaced", message, Some(hint));
            }
            let block = split.block.map(|span| reader.block(&span));
            (block.unwrap_or_default(), &text[split.body..])
        }
        Err(split::Unclosed(span)) => {
            let message = "the frontmatter is never closed".to_owned();
            let hint = "end it with a line that holds only `---`".to_owned();
            reader.error_with_hint(&span, "frontmatter-unclosed", message, Some(hint));
            // Everything counts as body, so that the missing line is the only mistake in the
            // report.
            (Frontmatter::default(), &text[span.start..])
        }
    };
    let reader::Reader { mentions, keys, diagnostics, .. } = reader;
    ParsedPrompt { front, body, mentions, keys, diagnostics }
}

#[cfg(test)]
mod tests;
