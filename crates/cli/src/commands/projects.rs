//! `raymond projects`: lists the projects of this user, and changes the list.
//!
//! `known_projects` says when a project is registered. This command reads only the ends of
//! journals, so it is quick for many runs.

use std::cmp::Reverse;
use std::path::Path;

use raymond_core::time::Timestamp;
use raymond_engine::project::Project;
use raymond_engine::{clock, inspect};
use raymond_store::ProjectRegistry;
use raymond_store::disk::RealDisk;
use serde_json::json;

use crate::args::{AddProject, ForgetProject, Projects, ProjectsCommand};
use crate::failure::Failure;
use crate::known_projects::{self, KnownProjects};
use crate::local_time::{age, between, date_time};
use crate::path_text::below_home;
use crate::paths::absolute;
use crate::sanitize::{aligned, sanitized};

use super::{print_json, print_text};

pub(crate) fn projects(flags: &Projects) -> Result<u8, Failure> {
    match &flags.change {
        None => list(flags)?,
        Some(ProjectsCommand::Add(flags)) => add(flags)?,
        Some(ProjectsCommand::Forget(flags)) => forget(flags)?,
    }
    Ok(0)
}

/// A row of the list.
struct ListedProject {
    project: Project,
    /// How many runs have a record.
    runs: usize,
    last_activity: Option<Timestamp>,
}

fn list(flags: &Projects) -> Result<(), Failure> {
    let KnownProjects { projects, mut problems } = known_projects::registered()?;
    let mut listed = Vec::new();
    for project in projects {
        match ListedProject::of(project) {
            Ok(row) => listed.push(row),
            Err(failure) => problems.push(failure.message_and_hint().0),
        }
    }
    // The sort is stable, so projects without runs stay in the order of their paths.
    listed.sort_by_key(|row| Reverse(row.last_activity));
    if flags.json {
        let rows = listed.iter().map(ListedProject::json).collect::<Vec<_>>();
        print_json(json!({ "version": crate::json::VERSION, "projects": rows }))?;
    } else {
        print_text(&table(&listed, clock::now()))?;
    }
    for problem in &problems {
        crate::say!("{problem}");
    }
    if listed.is_empty() {
        crate::say!("no project is registered; a run registers its project");
    }
    Ok(())
}

impl ListedProject {
    fn of(project: Project) -> Result<Self, Failure> {
        let times = project.runs()?;
        let times = times.iter().filter_map(|run| inspect::unverified_last_activity(&project, run));
        let times: Vec<Timestamp> = times.collect();
        let last_activity = times.iter().max().copied();
        Ok(Self { runs: times.len(), last_activity, project })
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "project": self.project.root.project(),
            "runs": self.runs,
            "updated_at": self.last_activity.map(|at| at.to_string()),
        })
    }

    /// Returns the cells in the order of [`HEADER`].
    fn cells(&self, now: Timestamp) -> [String; 4] {
        let at = |format: fn(Timestamp, Timestamp) -> String| {
            self.last_activity.map_or_else(|| "-".to_owned(), |at| format(at, now))
        };
        [
            sanitized(&below_home(self.project.root.project())),
            self.runs.to_string(),
            at(|at, _| date_time(at)),
            at(|at, now| age(between(at, now))),
        ]
    }
}

const HEADER: [&str; 4] = ["PROJECT", "RUNS", "LAST ACTIVITY", "AGE"];

/// ```text
/// PROJECT  RUNS  LAST ACTIVITY         AGE
/// ~/app    12    2026-11-19 10:05 CET  3m
/// ```
fn table(listed: &[ListedProject], now: Timestamp) -> String {
    if listed.is_empty() {
        return String::new();
    }
    let rows = listed.iter().map(|row| row.cells(now));
    let rows: Vec<[String; 4]> = [HEADER.map(str::to_owned)].into_iter().chain(rows).collect();
    aligned(&rows).map(|line| line + "\n").collect()
}

fn add(flags: &AddProject) -> Result<(), Failure> {
    let directory = absolute(flags.directory.as_deref().unwrap_or_else(|| Path::new(".")))?;
    if !Path::new(&directory).is_dir() {
        return Err(Failure::usage(format!("{directory} is not a directory")));
    }
    let project = Project::locate(directory.as_ref())?;
    let directory = absolute(project.root.project())?;
    registry()?.add(&RealDisk, &directory, clock::now().0)?;
    crate::say!("registered {}", below_home(directory.as_ref()));
    Ok(())
}

fn forget(flags: &ForgetProject) -> Result<(), Failure> {
    let registry = registry()?;
    for directory in known_projects::meant_directories(&flags.directory) {
        let Some(name) = directory.to_str() else { continue };
        if registry.forget(&RealDisk, name)? {
            crate::say!("forgot {}; its runs are kept", below_home(&directory));
            crate::say!(
                "a new run registers it again, unless its raymond.toml has registry = false"
            );
            return Ok(());
        }
    }
    let message = format!("{} is not a registered project", flags.directory.display());
    Err(Failure::usage(message).hint("see `raymond projects`"))
}

fn registry() -> Result<ProjectRegistry, Failure> {
    known_projects::registry().ok_or_else(|| {
        Failure::environment("could not find the state directory of this user")
            .hint("set HOME, or XDG_STATE_HOME to an absolute path")
    })
}
