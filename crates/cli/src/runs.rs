//! Which run a person means.

use raymond_core::ids::RunId;
use raymond_engine::look::{self, Look};
use raymond_engine::project::Project;

use crate::failure::Failure;

/// The project of the current directory.
pub(crate) fn project() -> Result<Project, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::environment(format!("there is no current directory: {error}")))?;
    Ok(Project::locate(&here)?)
}

/// The run of this id, of a unique beginning of it, or `@last`.
pub(crate) fn find(project: &Project, wanted: &str) -> Result<RunId, Failure> {
    match wanted {
        "@last" => last(project),
        wanted => Ok(project.find(wanted)?),
    }
}

/// The run that is named, or the last one.
pub(crate) fn named_or_last(project: &Project, wanted: Option<&str>) -> Result<RunId, Failure> {
    find(project, wanted.unwrap_or("@last"))
}

/// Looks at a run.
pub(crate) fn look(project: &Project, run: &RunId) -> Result<Look, Failure> {
    look::look(project, run).map_err(|error| Failure::from(error).about(run))
}

/// The only run that is not finished and that nobody drives.
pub(crate) fn only_unfinished(project: &Project) -> Result<RunId, Failure> {
    let unfinished: Vec<RunId> = all(project)?
        .into_iter()
        .filter(|look| look.status.is_unfinished() && look.owner.is_none())
        .map(|look| look.header.run)
        .collect();
    match unfinished.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::usage("no run is unfinished").hint("see `raymond list`")),
        several => {
            let names: Vec<&str> = several.iter().take(10).map(RunId::as_str).collect();
            Err(Failure::usage(format!("{} runs are unfinished", several.len()))
                .hint(format!("name one of {}", names.join(", "))))
        }
    }
}

/// Every run that can be read, the last one first.
pub(crate) fn all(project: &Project) -> Result<Vec<Look>, Failure> {
    let looks = project.runs()?.into_iter().filter_map(|run| look::look(project, &run).ok());
    let mut looks: Vec<Look> = looks.collect();
    looks.sort_by_key(|look| std::cmp::Reverse(look.head.ledger.started_at));
    Ok(looks)
}

fn last(project: &Project) -> Result<RunId, Failure> {
    match all(project)?.first() {
        Some(look) => Ok(look.header.run.clone()),
        None => Err(Failure::usage("this project has no runs yet").hint("raymond run WORKFLOW")),
    }
}
