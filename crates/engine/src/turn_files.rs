//! The files and directories that a turn has in the directory of its run.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use raymond_core::ids::{AgentId, TurnId};
use raymond_core::run::settings::ConfigHome;
use raymond_store::disk;

/// Returns the directory of the client's configuration for an agent, or `None` for the user's own.
pub(crate) fn config_home(whose: ConfigHome, homes: &Path, agent: &AgentId) -> Option<PathBuf> {
    match whose {
        ConfigHome::Shared => None,
        ConfigHome::PerAgent => Some(homes.join(agent.as_str())),
    }
}

pub fn transcript(directory: &Path, turn: &TurnId, attempt: u32) -> PathBuf {
    directory.join(format!("{turn}.{attempt}.jsonl"))
}

/// Returns the path of the prompt of an attempt, which exists only in an unpinned run.
pub(crate) fn kept_prompt(directory: &Path, turn: &TurnId, attempt: u32) -> PathBuf {
    directory.join(format!("{turn}.{attempt}.md"))
}

/// Returns an error for a file that cannot be written. The machine failed, not the script, so the
/// run ends here and `resume` continues it.
pub(crate) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> disk::Error {
    |source| disk::Error { attempt: "write", path: path.to_owned(), source }
}

pub(crate) fn create_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Writes a private file in a private directory.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), disk::Error> {
    let folder = path.parent().unwrap_or(path);
    create_private(folder).map_err(unwritable(folder))?;
    write_new(path, bytes, 0o600).map_err(unwritable(path))
}

/// Writes a new file in place of any earlier one. An earlier link is removed, not written through.
pub(crate) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)
}
