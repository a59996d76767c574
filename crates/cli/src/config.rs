//! Configuration: the user's file, the project's file, the environment, the flags; later wins.
//!
//! All four are layers of one type, and every value keeps its origin. `keys` is the table of all
//! settings; the other modules read and show what the table describes. An unknown key, or a value
//! of the wrong type, is an error with a position, because a typo must never drop a budget. The
//! settings that a resume keeps are decided in `settings`.

mod environment;
mod file;
mod flags;
mod keys;
mod kind;
mod layer;
mod row;
mod setting;
mod value;

use std::fmt;
use std::path::PathBuf;

use raymond_core::diagnostic::Diagnostic;
use raymond_engine::project::Project;
use serde::Serialize;

use crate::failure::Failure;
use crate::{path_text, paths};

use keys::{KEYS, NamedKey};

pub(crate) use flags::{repeated_flags, with_unchanged_default};
pub(crate) use keys::Layer;
pub(crate) use kind::count_from_one;
pub(crate) use layer::Sourced;
pub(crate) use row::SettingRow;
pub(crate) use setting::RunFlag;

/// Loads the configuration of a project: all layers except the flags.
pub(crate) fn load(project: &Project) -> Result<Layer, Failure> {
    let mut mistakes = Vec::new();
    let mut all = Layer::default();
    for (whose, path) in files(project) {
        // Mistakes are collected over all layers, so that the user sees every mistake at once.
        all = file::read(&path, whose, &mut mistakes)?.over(all);
    }
    let all = environment::read(std::env::vars_os(), &mut mistakes).over(all);
    if mistakes.is_empty() { Ok(all) } else { Err(Failure::invalid("the configuration", mistakes)) }
}

/// Returns all settings in the order of the documentation.
pub(crate) fn rows(config: &Layer) -> Vec<SettingRow> {
    KEYS.iter().flat_map(|key| (key.rows)(config)).collect()
}

/// Returns the names of all environment variables with settings.
pub(crate) fn variables() -> impl Iterator<Item = String> {
    NamedKey::all().filter_map(|named| named.variable())
}

/// The author of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConfigScope {
    /// The user who runs Raymond.
    User,
    /// The authors of the project, which may come from a stranger's repository. A project must not
    /// choose the programs that Raymond starts.
    Project,
}

/// Returns the paths of all configuration files, existing or not; later ones win.
fn files(project: &Project) -> impl Iterator<Item = (ConfigScope, PathBuf)> {
    let person = user_path().map(|path| (ConfigScope::User, path));
    let of_project = (ConfigScope::Project, project.root.project().join("raymond.toml"));
    person.into_iter().chain([of_project])
}

fn user_path() -> Option<PathBuf> {
    let home = paths::user_directory("XDG_CONFIG_HOME", ".config")?;
    Some(home.join("raymond").join("config.toml"))
}

/// Names the configuration file of the user, for messages.
fn user_file() -> String {
    let path = user_path().map(|path| path_text::below_home(&path));
    path.unwrap_or_else(|| "the configuration of the user".to_owned())
}

/// A configuration file for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ConfigFile {
    pub(crate) path: String,
    pub(crate) exists: bool,
}

impl fmt::Display for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, exists } = self;
        if *exists { f.write_str(path) } else { write!(f, "{path} (missing)") }
    }
}

/// Returns the configuration files, and whether they exist.
pub(crate) fn config_files(project: &Project) -> Vec<ConfigFile> {
    files(project)
        .map(|(_, path)| ConfigFile { path: path_text::below_here(&path), exists: path.exists() })
        .collect()
}

fn mistake(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("configuration", message)
}

#[cfg(test)]
mod tests;
