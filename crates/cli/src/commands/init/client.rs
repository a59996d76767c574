//! Chooses the client for the prompts that `init` writes.
//!
//! Permissions are written for that client: a list of tools for Claude Code, a sandbox for Codex,
//! which would refuse lists. A mistake in the configuration is reported when a run starts, not
//! here.

use raymond_backends::{claude, codex};

use crate::{config, runs};

/// The client of the written prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    ClaudeCode,
    Codex,
    /// Replies, or an unknown backend.
    Other,
}

impl Client {
    /// Returns the configured client.
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
