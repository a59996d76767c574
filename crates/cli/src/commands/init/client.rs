//! Who is to answer the prompts that `init` writes.
//!
//! Permissions are written in the words of that client: lists of tools for one that keeps them, a
//! sandbox for one that does not, which would refuse the lists. A configuration that is wrong is told
//! when something is run, not here.

use raymond_backends::{claude, codex};

use crate::{config, runs};

/// Who answers when nobody says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    ClaudeCode,
    Codex,
    /// Replies, or something that does not exist.
    Other,
}

impl Client {
    /// The one that is configured.
    pub(super) fn configured() -> Self {
        let config = runs::project().and_then(|project| config::load(&project)).unwrap_or_default();
        match config.backend.as_ref().map_or(claude::NAME, |backend| backend.value.as_str()) {
            claude::NAME => Self::ClaudeCode,
            codex::NAME => Self::Codex,
            _ => Self::Other,
        }
    }

    /// `with Claude Code and a cap of $5.00`
    pub(super) fn with(self, cap: &str) -> String {
        match self {
            Self::ClaudeCode => format!("with Claude Code and {cap}"),
            Self::Codex => format!("with Codex and {cap}"),
            Self::Other => format!("with {cap}"),
        }
    }
}
