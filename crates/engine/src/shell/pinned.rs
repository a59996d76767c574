//! Files that exist only for a script: its pinned copy, the result that it was handed, and what it said
//! before it came to no good end.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use raymond_backends::script::LastWords;
use raymond_core::ids::TurnId;
use raymond_core::value::Value;
use raymond_core::workflow::State;

use super::kit::Kit;
use crate::observe;
use crate::scope::Origin;

/// The file to run: the script's own while it is what was pinned, so that it finds its neighbours;
/// otherwise a pinned copy.
pub(super) fn script(kit: &Kit, state: &State) -> io::Result<PathBuf> {
    if kit.origin == Origin::Directory {
        let own = Path::new(&kit.scope).join(state.name.as_str());
        if holds(&own, &state.source.bytes) {
            return Ok(own);
        }
    }
    let folder = kit.private.join(&state.hash.as_str()[..16]);
    let copy = folder.join(state.name.as_str());
    if !holds(&copy, &state.source.bytes) {
        let mode = if state.source.executable { 0o700 } else { 0o600 };
        create_private(&folder)?;
        write(&folder.join(".new"), &state.source.bytes, mode)?;
        fs::rename(folder.join(".new"), &copy)?;
    }
    Ok(copy)
}

/// Whether the file holds these bytes. Only a regular file of that length is read: anything else
/// could be endless, or never answer.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let found = fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64)
        && fs::read(path).is_ok_and(|content| content == bytes)
}

fn create_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Writes a file anew: whatever has its name, a link least of all, is not written through.
fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)
}

/// So much is kept of the end of what a script said, in bytes.
const MOST_KEPT: usize = 64 * 1024;

/// Keeps the end of what a script said beside where a client's transcript would be. It is for a person's eyes, so a
/// run does not fail where it cannot be written.
pub(super) fn keep(transcript: &Path, last: &LastWords) {
    for (said, extension) in [(&last.stdout, "stdout"), (&last.stderr, "stderr")] {
        let end = &said[said.ceil_char_boundary(said.len().saturating_sub(MOST_KEPT))..];
        if let (false, Some(folder)) = (end.is_empty(), transcript.parent()) {
            let kept = transcript.with_extension(extension);
            create_private(folder).and_then(|()| write(&kept, end.as_bytes(), 0o600)).ok();
        }
    }
}

/// The file with the result that a script was handed; it goes with the turn.
#[derive(Debug)]
pub(super) struct Result(Option<PathBuf>);

impl Result {
    /// Writes the file, when there is a result.
    pub(super) fn of(kit: &Kit, turn: &TurnId, result: Option<&Value>) -> io::Result<Self> {
        let Some(value) = result else { return Ok(Self(None)) };
        let text = observe::load(&kit.blobs, value).map_err(io::Error::other)?;
        create_private(&kit.private)?;
        let path = kit.private.join(format!("result-{turn}"));
        write(&path, text.as_bytes(), 0o600)?;
        Ok(Self(Some(path)))
    }

    /// Where it is; empty without one.
    pub(super) fn path(&self) -> &str {
        self.0.as_deref().and_then(Path::to_str).unwrap_or_default()
    }
}

impl Drop for Result {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            fs::remove_file(path).ok();
        }
    }
}
