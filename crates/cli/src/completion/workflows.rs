//! Completes workflows by path: directories, archives, documents and states.
//!
//! Every directory is offered, because it may lead to a workflow. States are offered if they belong
//! to a workflow (their directory has an entry state), or once the user has typed a part of the
//! name.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap_complete::engine::CompletionCandidate;
use raymond_core::extension::is_state;

use crate::workflows::{has_entry, is_document, is_prompt};

/// Most names of a folder that are searched, so that completion stays fast in huge folders.
const MOST_NAMES: usize = 1_000;

/// Completes every kind of workflow.
pub(super) fn all(current: &OsStr) -> Vec<CompletionCandidate> {
    let Typed { folder, name } = Typed::of(current);
    let has_entry = has_entry(&folder);
    offers(current, |found, path| match Kind::of(found, path) {
        Kind::Workflow | Kind::Folder | Kind::Archive => true,
        // Many JSON files of a project are not workflows, so a JSON file must be typed in part.
        Kind::Document => !name.is_empty(),
        Kind::State => has_entry || !name.is_empty(),
        Kind::Other => false,
    })
}

/// Completes prompts, and directories that may contain one.
pub(super) fn prompts(current: &OsStr) -> Vec<CompletionCandidate> {
    offers(current, |found, path| path.is_dir() || is_prompt(found))
}

/// Completes documents of steps, and directories that may contain one.
pub(super) fn documents(current: &OsStr) -> Vec<CompletionCandidate> {
    offers(current, |_, path| path.is_dir() || is_document(path))
}

/// Completes only directories with an entry state if nothing is typed; otherwise every workflow.
pub(super) fn entries(current: &OsStr) -> Vec<CompletionCandidate> {
    if !current.is_empty() {
        return all(current);
    }
    offers(current, |found, path| Kind::of(found, path) == Kind::Workflow)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A directory with an entry state.
    Workflow,
    /// A directory without an entry state.
    Folder,
    Archive,
    /// A JSON file.
    Document,
    State,
    Other,
}

impl Kind {
    fn of(name: &str, path: &Path) -> Self {
        if path.is_dir() {
            return if has_entry(path) { Self::Workflow } else { Self::Folder };
        }
        let is_archive = path.extension().is_some_and(|extension| extension == "zip");
        if is_document(path) {
            return Self::Document;
        }
        match (is_archive, is_state(name)) {
            (true, _) => Self::Archive,
            (false, true) => Self::State,
            (false, false) => Self::Other,
        }
    }
}

/// A partly typed path.
struct Typed {
    folder: PathBuf,
    name: String,
}

impl Typed {
    fn of(current: &OsStr) -> Self {
        let text = current.to_string_lossy();
        let (folder, name) = match text.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((folder, name)) => (folder, name),
            None => ("", text.as_ref()),
        };
        Self { folder: Path::new(".").join(folder), name: name.to_owned() }
    }
}

fn offers(current: &OsStr, is_offered: impl Fn(&str, &Path) -> bool) -> Vec<CompletionCandidate> {
    let Typed { folder, name } = Typed::of(current);
    let text = current.to_string_lossy();
    // Candidates repeat the typed folder exactly: a shell replaces the whole word.
    let before = &text[..text.len() - name.len()];
    let mut found: Vec<String> = names(&folder)
        .filter(|found| {
            found.starts_with(&name) && (!found.starts_with('.') || name.starts_with('.'))
        })
        .filter(|found| is_offered(found, &folder.join(found)))
        .map(|found| {
            let slash = if folder.join(&found).is_dir() { "/" } else { "" };
            format!("{before}{found}{slash}")
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(CompletionCandidate::new).collect()
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MOST_NAMES);
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // A shell takes a line break in a candidate for the end of the candidate.
    names.filter(|name| !name.contains(char::is_control))
}
