//! Loads the states of a directory: its top-level files with a supported extension.
//!
//! Only states are opened and counted; other files cost nothing. A link may lead to any file below
//! the directory. A broken link, or one that leads out of the directory, is left out with a
//! warning: it must not become a state, but one bad link in a project must not stop every run
//! either.

use std::fs;
use std::path::{Path, PathBuf};

use raymond_core::diagnostic::Diagnostic;
use raymond_core::extension::is_state;
use raymond_core::workflow::{EntryPoint, SourceFile};

use super::limited_read::{ByteLimit, Stopped};
use super::{LoadedScope, MOST_ENTRIES, ScopeError, ScopeOrigin, unreadable};

pub(super) fn load(directory: &Path, start: EntryPoint) -> Result<LoadedScope, ScopeError> {
    let scope = fs::canonicalize(directory).map_err(|error| unreadable(directory, error))?;
    let mut limit = ByteLimit::new();
    let mut files = Vec::new();
    let mut warnings = Vec::new();
    for name in state_names(&scope)? {
        match locate(&scope, &name)? {
            EntryKind::File(path) => files.push(read(&scope, &path, name, &mut limit)?),
            EntryKind::Directory => {}
            // The user named this file, so a warning is not enough: the run cannot start without
            // it.
            EntryKind::Leaves(target) if start == EntryPoint::State(name.clone()) => {
                let path = scope.join(name);
                return Err(ScopeError::StartLeaves { path, target });
            }
            EntryKind::Leaves(target) => warnings.push(left_out(
                &name,
                "link-leaves-scope",
                &format!("the link leads out of the scope, to {}", target.display()),
            )),
            EntryKind::Broken => {
                warnings.push(left_out(&name, "broken-link", "the link leads nowhere"));
            }
            EntryKind::Special => {
                warnings.push(left_out(&name, "not-a-file", "this is not a file"));
            }
        }
    }
    Ok(LoadedScope { scope, start, files, origin: ScopeOrigin::Directory, warnings })
}

/// Loads one file. Returns the directory without links, and the file.
pub(super) fn load_one(directory: &Path, name: &str) -> Result<(PathBuf, SourceFile), ScopeError> {
    let scope = fs::canonicalize(directory).map_err(|error| unreadable(directory, error))?;
    let path = scope.join(name);
    match locate(&scope, name)? {
        EntryKind::File(found) => {
            let file = read(&scope, &found, name.to_owned(), &mut ByteLimit::new())?;
            Ok((scope, file))
        }
        EntryKind::Leaves(target) => Err(ScopeError::StartLeaves { path, target }),
        EntryKind::Broken => Err(ScopeError::Missing(path)),
        EntryKind::Directory | EntryKind::Special => Err(ScopeError::NotAWorkflow(path)),
    }
}

/// The kind of a directory entry.
enum EntryKind {
    /// A file of the scope, at this path without links.
    File(PathBuf),
    Directory,
    /// A link out of the scope, to this path.
    Leaves(PathBuf),
    /// A link to nothing.
    Broken,
    /// A pipe, a socket, a device.
    Special,
}

/// Lists the names of states, in order.
fn state_names(scope: &Path) -> Result<Vec<String>, ScopeError> {
    let failed = |error| unreadable(scope, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(scope).map_err(failed)? {
        // A transition names its target as text, so a name that is not UTF-8 is not a state.
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string()
            && is_state(&name)
        {
            names.push(name);
        }
        // Checked while listing, because a directory may have any number of names.
        if names.len() > MOST_ENTRIES {
            return Err(ScopeError::TooManyStates(scope.to_owned()));
        }
    }
    names.sort();
    Ok(names)
}

fn locate(scope: &Path, name: &str) -> Result<EntryKind, ScopeError> {
    let path = scope.join(name);
    let failed = |error| unreadable(&path, error);
    let is_link = fs::symlink_metadata(&path).map_err(failed)?.is_symlink();
    let target = match fs::canonicalize(&path) {
        Ok(target) => target,
        // The target is missing, or the links form a circle.
        Err(_) if is_link => return Ok(EntryKind::Broken),
        Err(error) => return Err(failed(error)),
    };
    if !target.starts_with(scope) {
        return Ok(EntryKind::Leaves(target));
    }
    let found = fs::metadata(&target).map_err(failed)?;
    Ok(if found.is_file() {
        EntryKind::File(target)
    } else if found.is_dir() {
        EntryKind::Directory
    } else {
        EntryKind::Special
    })
}

fn read(
    scope: &Path,
    path: &Path,
    name: String,
    limit: &mut ByteLimit,
) -> Result<SourceFile, ScopeError> {
    let failed = |error| unreadable(path, error);
    let file = fs::File::open(path).map_err(failed)?;
    // The open file is asked, because another file may be at its path by now.
    let executable = is_executable(&file.metadata().map_err(failed)?);
    let bytes = limit.read(file).map_err(|stopped| match stopped {
        Stopped::TooLarge => ScopeError::TooLarge(scope.to_owned()),
        Stopped::Failed(error) => failed(error),
    })?;
    Ok(SourceFile { name, bytes: bytes.into(), executable })
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

fn left_out(name: &str, code: &'static str, why: &str) -> Diagnostic {
    Diagnostic::warning(code, format!("{why}; it is not used as a state")).in_file(name)
}
