//! Loads the scope of `ralph`: one prompt, and the command that its results have to pass.
//!
//! Other files beside the prompt are not read. The loop never leads to them, and the prompt is
//! often at the root of a project, among files that are not states.

use std::path::Path;

use raymond_core::extension::Extension;
use raymond_core::run::Ralph;
use raymond_core::run::program::UNTIL;
use raymond_core::workflow::{EntryPoint, SourceFile};

use super::{LoadedScope, NotAPrompt, ScopeError, ScopeOrigin, directory, state_name, unreadable};

/// Loads the prompt at `path`.
pub fn load_prompt(path: &Path, ralph: &Ralph) -> Result<LoadedScope, ScopeError> {
    let found = std::fs::metadata(path).map_err(|error| unreadable(path, error))?;
    let refused = |what| Err(ScopeError::NotAPrompt { path: path.to_owned(), what });
    if found.is_dir() {
        return refused(NotAPrompt::Directory);
    }
    let name = match state_name(path) {
        Ok(name) => name,
        Err(readme @ ScopeError::Readme(_)) => return Err(readme),
        Err(_) => return refused(what(path)),
    };
    if Extension::of(&name) != Some(Extension::Md) {
        return refused(NotAPrompt::Workflow);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let (scope, prompt) = directory::load_one(parent.unwrap_or_else(|| Path::new(".")), &name)?;
    let until = ralph.script().map(|text| SourceFile {
        name: UNTIL.to_owned(),
        bytes: text.into_bytes().into(),
        executable: false,
    });
    let files = [prompt].into_iter().chain(until).collect();
    let (start, origin) = (EntryPoint::Ralph(name), ScopeOrigin::Directory);
    Ok(LoadedScope { scope, start, files, origin, warnings: Vec::new() })
}

fn what(path: &Path) -> NotAPrompt {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("zip" | "json") => NotAPrompt::Workflow,
        Some(_) | None => NotAPrompt::Other,
    }
}
