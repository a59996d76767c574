//! Loads the files of a workflow: a directory, one state in a directory, an archive, or the one
//! prompt that `ralph` repeats.
//!
//! All states are read into memory once; nothing is unpacked to disk. The limits count the bytes
//! that were really read, not the sizes that a header claims. Files that are not states are left
//! out, and so are links that lead out of the scope. The meaning of the files is in
//! `raymond_core::workflow`.

use std::io;
use std::path::{Path, PathBuf};

use raymond_core::diagnostic::Diagnostic;
use raymond_core::extension::is_state;
use raymond_core::workflow::{EntryPoint, SourceFile};

mod archive;
mod directory;
mod limited_read;
mod prompt;

pub use archive::ArchiveError;
pub use prompt::load_prompt;

/// The most files of a scope. Real workflows have tens of states; the limit only bounds memory and
/// time.
pub const MOST_ENTRIES: usize = 10_000;

/// The most bytes of a scope, unpacked. They are all in memory and in the pinned definition.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The files of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedScope {
    /// The directory or the archive, absolute and without links.
    pub scope: PathBuf,
    /// The state with which a run starts.
    pub start: EntryPoint,
    /// The states, in order of name.
    pub files: Vec<SourceFile>,
    pub origin: ScopeOrigin,
    /// States that were left out, and why.
    pub warnings: Vec<Diagnostic>,
}

/// Where the files of a scope were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeOrigin {
    /// In a directory: a script may run from its own path.
    Directory,
    /// In an archive: a script has to be unpacked.
    Archive,
}

/// Why a scope cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    #[error("could not find {}", .0.display())]
    Missing(PathBuf),
    #[error("could not read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The path is none of the forms that a workflow can have.
    #[error(
        "{} is not a workflow: expected a directory, a .zip, a state (.md, .sh, .bat, .ps1), or a document of steps (.json)",
        .0.display()
    )]
    NotAWorkflow(PathBuf),
    /// README files are never states.
    #[error("{} is not a state: a README describes a workflow", .0.display())]
    Readme(PathBuf),
    /// A JSON document is a document of steps, which `steps::load` reads.
    #[error("{} is a document of steps (Crayfish), not a workflow of states", .0.display())]
    Crayfish(PathBuf),
    /// `ralph` cannot repeat it.
    #[error("{}", what.describe(path))]
    NotAPrompt { path: PathBuf, what: NotAPrompt },
    /// The state to start with is a link out of its directory.
    #[error("{} leads to {}, outside its directory", path.display(), target.display())]
    StartLeaves {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// There are more states than a scope may have.
    #[error("{} has more than {MOST_ENTRIES} states", .0.display())]
    TooManyStates(PathBuf),
    /// The states are larger than a scope may be.
    #[error("the states of {} have more than {} MiB", .0.display(), MOST_BYTES >> 20)]
    TooLarge(PathBuf),
    /// The archive is not one that can be used.
    #[error("could not use the archive {}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        source: ArchiveError,
    },
}

/// The kind of path that was named instead of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAPrompt {
    /// A directory.
    Directory,
    /// A script, an archive or a document, which `run` accepts.
    Workflow,
    /// A file that is not a state.
    Other,
}

impl NotAPrompt {
    fn describe(self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Directory => format!("{path} is a directory, but `ralph` repeats one prompt"),
            Self::Workflow | Self::Other => {
                format!("{path} is not a prompt: `ralph` repeats a .md file")
            }
        }
    }
}

/// Loads the scope of a run that is started with `path`.
pub fn load(path: &Path) -> Result<LoadedScope, ScopeError> {
    let found = std::fs::metadata(path).map_err(|error| unreadable(path, error))?;
    let extension = path.extension().and_then(|extension| extension.to_str());
    // Some systems write extensions in upper case.
    let is = |known: &str| extension.is_some_and(|found| found.eq_ignore_ascii_case(known));
    if found.is_dir() {
        directory::load(path, EntryPoint::Entry)
    } else if !found.is_file() {
        Err(ScopeError::NotAWorkflow(path.to_owned()))
    } else if is("zip") {
        archive::load(path)
    } else if is("json") {
        Err(ScopeError::Crayfish(path.to_owned()))
    } else {
        let name = state_name(path)?;
        // The parent of a bare file name is an empty path, which cannot be opened.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        directory::load(parent.unwrap_or_else(|| Path::new(".")), EntryPoint::State(name))
    }
}

fn state_name(path: &Path) -> Result<String, ScopeError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let readme = path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"));
    match name {
        Some(name) if is_state(name) => Ok(name.to_owned()),
        Some(_) if readme => Err(ScopeError::Readme(path.to_owned())),
        _ => Err(ScopeError::NotAWorkflow(path.to_owned())),
    }
}

pub(crate) fn unreadable(path: &Path, source: io::Error) -> ScopeError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ScopeError::Missing(path),
        _ => ScopeError::Unreadable { path, source },
    }
}

#[cfg(test)]
mod tests;
