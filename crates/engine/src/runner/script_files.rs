//! Files that exist only for a script: its pinned copy, the result that it receives, and the output
//! of a failed attempt.
//!
//! All of them are private to the user and inside the directory of the run. A link is never written
//! through. The links beside the copy are in `script_neighbours`.

use std::fs;
use std::path::{Path, PathBuf};

use raymond_backends::script::{ScriptEnd, ScriptOutput, ScriptSuccess};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::TurnId;
use raymond_core::run::settings::Pinning;
use raymond_core::run::turn_spec::ScriptSpec;
use raymond_core::value::Value;
use raymond_core::workflow::SourceFile;
use raymond_store::{blobs, disk};

use super::script_neighbours;
use super::turn_context::TurnContext;
use crate::observe;
use crate::scope::ScopeOrigin;
use crate::turn_files::{create_private, unwritable, write_new, write_private};

/// A script that is ready to run.
#[derive(Debug)]
pub(super) struct Runnable {
    /// The file to run.
    pub(super) path: PathBuf,
    /// The directory of the script itself, if the file is a copy of it.
    scope: Option<PathBuf>,
}

impl Runnable {
    /// Replaces the path of the copy by the script's own path in its messages: a user who reads
    /// `DECIDE.sh: line 6` looks for the file to edit, not for its copy.
    pub(super) fn with_own_paths(&self, end: ScriptEnd) -> ScriptEnd {
        let own = |text: String| self.own_paths(text);
        match end {
            ScriptEnd::Succeeded(spoken) => {
                ScriptEnd::Succeeded(ScriptSuccess { stderr: own(spoken.stderr), ..spoken })
            }
            ScriptEnd::Failed { failure, output } => {
                let failure = match failure {
                    TurnFailure::Script { status, stderr, tag } => {
                        TurnFailure::Script { status, stderr: own(stderr), tag }
                    }
                    other => other,
                };
                ScriptEnd::Failed {
                    failure,
                    output: ScriptOutput { stderr: own(output.stderr), ..output },
                }
            }
            ScriptEnd::Interrupted { progressed, output } => {
                let output = ScriptOutput { stderr: own(output.stderr), ..output };
                ScriptEnd::Interrupted { progressed, output }
            }
        }
    }

    fn own_paths(&self, text: String) -> String {
        let own = self.scope.as_deref().and_then(Path::to_str);
        match (self.path.parent().and_then(Path::to_str), own) {
            (Some(copied), Some(own)) => text.replace(&format!("{copied}/"), &format!("{own}/")),
            _ => text,
        }
    }
}

/// Prepares the file to run.
///
/// A pinned run always runs a private copy of the pinned bytes. Comparing the script's own file
/// with them and then running that file would leave a gap: an edit between the two would run. An
/// edit while the script runs would run as well, because shells read scripts bit by bit. An
/// unpinned run uses its files as they are, so there the script's own file runs.
pub(super) fn prepare(context: &TurnContext, script: &ScriptSpec) -> Result<Runnable, disk::Error> {
    let (scope, name) = (Path::new(&context.run.scope), script.source.name.as_str());
    // One directory per version of a script: after an edit, running turns keep their own copy. 16
    // hex digits are enough to tell apart the versions of one run.
    let folder = context.private.join(&script.hash.as_str()[..16]);
    let folder = match (context.origin, context.run.pinning) {
        (ScopeOrigin::Directory, Pinning::Unpinned)
            if has_bytes_of(&scope.join(name), &script.source) =>
        {
            return Ok(Runnable { path: scope.join(name), scope: None });
        }
        (ScopeOrigin::Directory, _) => {
            script_neighbours::prepare(&folder, scope, name).map_err(unwritable(&folder))?
        }
        (ScopeOrigin::Archive, _) => {
            create_private(&folder).map_err(unwritable(&folder))?;
            folder
        }
    };
    let copy = folder.join(name);
    // A link would lead to the script's own file.
    if fs::symlink_metadata(&copy).is_ok_and(|found| found.is_symlink())
        || !has_bytes_of(&copy, &script.source)
    {
        let mode = if script.source.executable { 0o500 } else { 0o400 };
        // Renamed into place, because another turn may be running the same copy.
        let new = folder.join(format!(".{name}.new"));
        write_new(&new, &script.source.bytes, mode).map_err(unwritable(&new))?;
        fs::rename(new, &copy).map_err(unwritable(&copy))?;
    }
    let scope = (context.origin == ScopeOrigin::Directory).then(|| scope.to_owned());
    Ok(Runnable { path: copy, scope })
}

/// Returns whether the file at `path` contains the bytes of the source.
fn has_bytes_of(path: &Path, source: &SourceFile) -> bool {
    let bytes = &source.bytes;
    // Only a regular file of this length is read: a pipe never answers, and a device may be
    // endless.
    let found = fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64)
        && fs::read(path).is_ok_and(|content| content == **bytes)
}

/// The most bytes that are kept of the end of a failed script's output, for each stream. The end
/// explains the failure; 64 KiB is more than a person reads.
const MOST_KEPT_BYTES: usize = 64 * 1024;

/// Keeps the end of a script's output at the place of a transcript. Only people read it, so errors
/// are ignored.
pub(super) fn keep_output(transcript: &Path, last: &ScriptOutput) {
    for (said, extension) in [(&last.stdout, "stdout"), (&last.stderr, "stderr")] {
        let end = &said[said.ceil_char_boundary(said.len().saturating_sub(MOST_KEPT_BYTES))..];
        if let (false, Some(folder)) = (end.is_empty(), transcript.parent()) {
            let kept = transcript.with_extension(extension);
            create_private(folder).and_then(|()| write_new(&kept, end.as_bytes(), 0o600)).ok();
        }
    }
}

/// The file with the result for a script. Dropping it deletes the file.
#[derive(Debug)]
pub(super) struct ResultFile(Option<PathBuf>);

impl ResultFile {
    /// Writes the file if there is a result.
    pub(super) fn write(
        context: &TurnContext,
        turn: &TurnId,
        result: Option<&Value>,
    ) -> Result<Self, blobs::Error> {
        let Some(value) = result else { return Ok(Self(None)) };
        let text = observe::load(&*context.blobs, value)?;
        let path = context.private.join(format!("result-{turn}"));
        write_private(&path, text.as_bytes())?;
        Ok(Self(Some(path)))
    }

    /// Returns the path, or an empty text if there is no result.
    pub(super) fn path(&self) -> &str {
        self.0.as_deref().and_then(Path::to_str).unwrap_or_default()
    }
}

impl Drop for ResultFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            fs::remove_file(path).ok();
        }
    }
}
