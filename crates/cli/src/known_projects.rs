//! The projects of this user: when Raymond registers one, and which ones it lists.
//!
//! A project is registered when a run starts in it, so that `raymond list --all` finds its runs.
//! Nothing depends on the registry, and a failure never stops a run. The files are described in
//! `raymond_store::project_registry`; this module knows their place in the user's home.

use std::path::{Path, PathBuf};

use raymond_engine::clock;
use raymond_engine::project::Project;
use raymond_store::ProjectRegistry;
use raymond_store::disk::RealDisk;
use raymond_store::project_registry::{EntryError, IgnoredEntry};

use crate::config::Layer;
use crate::failure::Failure;
use crate::{path_text, paths, runs};

/// Projects, and what is wrong with others.
#[derive(Default)]
pub(crate) struct KnownProjects {
    pub(crate) projects: Vec<Project>,
    /// Why entries or projects were left out, as sentences for stderr.
    pub(crate) problems: Vec<String>,
}

/// Returns the registry of this user; `None` without a home directory.
pub(crate) fn registry() -> Option<ProjectRegistry> {
    let directory = paths::user_directory("XDG_STATE_HOME", ".local/state")?;
    Some(ProjectRegistry::in_state_directory(&directory))
}

/// Returns the registry that new runs are added to; `None` if the configuration switches it off.
pub(crate) fn registry_of_runs(config: &Layer) -> Option<ProjectRegistry> {
    let is_on = config.registry.as_ref().is_none_or(|given| given.value);
    if is_on { registry() } else { None }
}

/// Registers a project in which a run starts, unless the configuration forbids that. Returns a line
/// for stderr if it failed.
pub(crate) fn register(project: &Project, config: &Layer) -> Option<String> {
    let registry = registry_of_runs(config)?;
    // No run can start in a directory whose name is not UTF-8.
    let directory = project.root.project().to_str()?;
    let failed = registry.note(project.disk.as_ref(), directory, clock::now().0).err()?;
    Some(format!("raymond: `raymond list --all` may not list this project: {failed}"))
}

/// Returns the registered projects, sorted by path.
pub(crate) fn registered() -> Result<KnownProjects, Failure> {
    let Some(registry) = registry() else { return Ok(KnownProjects::default()) };
    let entries = registry.read(&RealDisk, clock::now().0)?;
    let mut known = KnownProjects::default();
    known.problems.extend(entries.ignored.iter().map(ignored));
    for directory in entries.directories {
        match Project::locate_registered(&directory) {
            Ok(project) => known.add(project),
            Err(error) => known.problems.push(error.to_string()),
        }
    }
    Ok(known)
}

/// Returns the registered projects and the one of the current directory.
pub(crate) fn registered_and_current() -> Result<KnownProjects, Failure> {
    let mut known = registered()?;
    match runs::project() {
        Ok(project) => known.add(project),
        Err(failure) => known.problems.push(failure.message_and_hint().0),
    }
    Ok(known)
}

impl KnownProjects {
    /// Adds a project once: two registered directories may belong to one repository now.
    fn add(&mut self, project: Project) {
        if self.projects.iter().all(|known| known.root != project.root) {
            self.projects.push(project);
        }
    }
}

fn ignored(IgnoredEntry { file, why }: &IgnoredEntry) -> String {
    let advice = match why {
        EntryError::Newer => "",
        EntryError::Unreadable(_) | EntryError::Damaged | EntryError::OtherPath => "; delete it",
    };
    format!("the entry {} {why}{advice}", path_text::below_home(file))
}

/// Returns the directories that the user may mean by a path: as given, without links, and the
/// project that contains it. The path need not exist.
pub(crate) fn meant_directories(path: &Path) -> Vec<PathBuf> {
    let absolute = std::path::absolute(path).ok();
    // `components` drops a slash at the end.
    let absolute = absolute.map(|path| path.components().collect::<PathBuf>());
    let resolved = path.canonicalize().ok();
    let project = resolved.as_deref().and_then(|path| Project::locate(path).ok());
    let project = project.map(|project| project.root.project().to_owned());
    absolute.into_iter().chain(resolved).chain(project).collect()
}
