//! The files and directories that a turn has in the directory of its run.

use std::path::{Path, PathBuf};

use raymond_core::ids::{AgentId, TurnId};
use raymond_core::run::settings::ConfigHome;

/// Returns the directory of the client's configuration for an agent, or `None` for the user's own.
pub(crate) fn config_home(whose: ConfigHome, homes: &Path, agent: &AgentId) -> Option<PathBuf> {
    match whose {
        ConfigHome::Shared => None,
        ConfigHome::PerAgent => Some(homes.join(agent.as_str())),
    }
}

/// Returns the path of the transcript of an attempt.
pub fn transcript(directory: &Path, turn: &TurnId, attempt: u32) -> PathBuf {
    directory.join(format!("{turn}.{attempt}.jsonl"))
}
