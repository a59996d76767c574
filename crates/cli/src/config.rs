//! Configuration: the person's file, the project's file, the environment, the flags; later wins.
//!
//! All four are layers of one shape, and every value remembers where it was said. A key that nobody
//! knows, or a value of the wrong kind, is an error that names its place: a typo must never drop a
//! budget. Which run a setting governs, and what a resume keeps, is decided in `settings`.

mod environment;
mod file;
mod flags;
mod keys;
mod layer;
mod rows;
mod value;

use std::fmt;
use std::path::{Path, PathBuf};

use raymond_core::diagnostic::Diagnostic;
use raymond_engine::project::Project;
use serde::Serialize;

use crate::failure::Failure;

pub(crate) use layer::{Layer, Sourced};
pub(crate) use rows::{Row, rows};

/// What is configured for a project: everything but the flags.
pub(crate) fn load(project: &Project) -> Result<Layer, Failure> {
    let mut mistakes = Vec::new();
    let mut all = Layer::default();
    for (whose, path) in files(project) {
        all = file::read(&path, whose, &mut mistakes)?.over(all);
    }
    let all = environment::read(std::env::vars_os(), &mut mistakes).over(all);
    if mistakes.is_empty() { Ok(all) } else { Err(Failure::invalid("the configuration", mistakes)) }
}

/// Who wrote a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConfigScope {
    /// Whoever runs this.
    User,
    /// Whoever wrote the project, which may have been cloned a minute ago: it does not choose which
    /// programs are started.
    Project,
}

/// The files, whether they exist or not; later ones win.
fn files(project: &Project) -> impl Iterator<Item = (ConfigScope, PathBuf)> {
    let person =
        user_config().map(|home| (ConfigScope::User, home.join("raymond").join("config.toml")));
    let of_project = (ConfigScope::Project, project.root.project().join("raymond.toml"));
    person.into_iter().chain([of_project])
}

/// A file that is looked for, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ConfigFile {
    pub(crate) path: String,
    pub(crate) exists: bool,
}

impl fmt::Display for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, exists } = self;
        if *exists { f.write_str(path) } else { write!(f, "no {path}") }
    }
}

/// The files that are looked for, and whether they exist.
pub(crate) fn config_files(project: &Project) -> Vec<ConfigFile> {
    files(project)
        .map(|(_, path)| ConfigFile { path: shown(&path), exists: path.exists() })
        .collect()
}

/// Where a person keeps configuration.
fn user_config() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    // A relative one is to be ignored, says its specification.
    named.filter(|path| path.is_absolute()).or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from)?;
        home.is_absolute().then(|| home.join(".config"))
    })
}

/// The path as it is shown: from here, where it lies below.
pub(crate) fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// A mistake in a configuration.
fn mistake(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("configuration", message)
}

#[cfg(test)]
mod tests;
