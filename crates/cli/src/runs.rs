//! Which run a person means.

use std::path::{Path, PathBuf};

use raymond_core::ids::RunId;
use raymond_core::run::Record;
use raymond_engine::discard::{self, Traces};
use raymond_engine::inspect::{self, InspectError, Inspection};
use raymond_engine::project::Project;
use raymond_store::journal::Tail;

use crate::failure::Failure;

/// The project of the current directory.
pub(crate) fn project() -> Result<Project, Failure> {
    Ok(Project::locate(&current_directory()?)?)
}

/// Where this process was called.
pub(crate) fn current_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::environment(format!("there is no current directory: {error}")))
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

/// Looks at a run that was started.
pub(crate) fn look(project: &Project, run: &RunId) -> Result<Inspection, Failure> {
    match examine(project, run) {
        Examined::Readable(look) | Examined::Damaged(look) => Ok(*look),
        Examined::NeverStarted => Err(never_started(run)),
        Examined::Lost => Err(lost(project, run)),
        Examined::Unreadable(error) => Err(Failure::from(error).about(run)),
    }
}

/// Everything that happened in a run, for those who tell it.
pub(crate) fn records(seen: &Inspection) -> impl Iterator<Item = Result<Record, Failure>> {
    let unread = |error| Failure::from(error).about(&seen.header.run);
    seen.records().map(move |record| record.map_err(unread))
}

/// Says where the records of a run end that are told, if others follow that cannot be.
pub(crate) fn tell_damage(seen: &Inspection) {
    if let Tail::Damaged(damaged) = &seen.journal.tail {
        crate::say!("{}: only what is before the damage is told: {damaged}", seen.head.run.id);
    }
}

/// Refuses a run that was never started; whatever else is wrong with it is not looked at.
pub(crate) fn check_started(project: &Project, run: &RunId) -> Result<(), Failure> {
    match examine(project, run) {
        Examined::NeverStarted => Err(never_started(run)),
        Examined::Lost => Err(lost(project, run)),
        Examined::Readable(_) | Examined::Damaged(_) | Examined::Unreadable(_) => Ok(()),
    }
}

/// Whether anything was ever recorded of a run, or is about to be.
pub(crate) fn is_started(project: &Project, run: &RunId) -> bool {
    !matches!(examine(project, run), Examined::NeverStarted)
}

/// A run whose creation went no further than its name.
pub(crate) fn never_started(run: &RunId) -> Failure {
    Failure::usage(format!("{run} was never started: nothing is recorded"))
        .hint(format!("raymond run WORKFLOW --run-id {run}"))
}

/// A run that was started, and of which nothing is recorded any more.
pub(crate) fn lost(project: &Project, run: &RunId) -> Failure {
    let paths = project.paths(run);
    let (journal, folder) = (paths.journal.display(), paths.directory.display());
    Failure::environment(format!("{run}: its journal is gone, or empty")).hint(format!(
        "restore {journal} from a copy; where there is none, look, and delete {folder}"
    ))
}

/// What there is of a run.
pub(crate) enum Examined {
    Readable(Box<Inspection>),
    /// Not even its first record is good.
    Damaged(Box<Inspection>),
    NeverStarted,
    /// It was started, and its journal is gone, or tells nothing any more.
    Lost,
    Unreadable(InspectError),
}

/// Looks whether a run can be read.
pub(crate) fn examine(project: &Project, run: &RunId) -> Examined {
    match inspect::inspect(project, run) {
        Ok(look) if look.head.seq > 0 => Examined::Readable(Box::new(look)),
        Ok(look) => match (&look.journal.tail, &look.owner) {
            (Tail::Damaged(_), _) => Examined::Damaged(Box::new(look)),
            // Its owner is about to record the start.
            (Tail::Clean | Tail::Torn(_), Some(_)) => Examined::Readable(Box::new(look)),
            (Tail::Clean | Tail::Torn(_), None) => never_started_or_lost(project, run),
        },
        Err(InspectError::Journal(error)) if error.is_missing() => {
            never_started_or_lost(project, run)
        }
        Err(error) => Examined::Unreadable(error),
    }
}

/// Nothing is recorded of a run that nobody drives: either nothing ever was, or it is gone.
fn never_started_or_lost(project: &Project, run: &RunId) -> Examined {
    match discard::traces(project, run) {
        Traces::None | Traces::Values => Examined::NeverStarted,
        Traces::OfWork => Examined::Lost,
    }
}

/// All runs of a project.
#[derive(Default)]
pub(crate) struct Survey {
    /// Those that can be read, the last one first.
    pub(crate) looks: Vec<Inspection>,
    /// Those that were never started, by name.
    pub(crate) never_started: Vec<RunId>,
    /// Those of which nothing can be read, by name.
    pub(crate) unreadable: Vec<RunId>,
}

/// Looks at every run.
pub(crate) fn survey(project: &Project) -> Result<Survey, Failure> {
    let mut survey = Survey::default();
    for run in project.runs()? {
        match examine(project, &run) {
            Examined::Readable(look) => survey.looks.push(*look),
            Examined::NeverStarted => survey.never_started.push(run),
            Examined::Damaged(_) | Examined::Lost | Examined::Unreadable(_) => {
                survey.unreadable.push(run);
            }
        }
    }
    survey.looks.sort_by_key(|look| std::cmp::Reverse(look.head.ledger.started_at));
    Ok(survey)
}

/// The only run that is not finished and that nobody drives.
pub(crate) fn only_unfinished(project: &Project) -> Result<RunId, Failure> {
    let survey = survey(project)?;
    if survey.looks.is_empty() && survey.unreadable.is_empty() {
        return Err(no_runs(project));
    }
    let unfinished: Vec<RunId> = survey
        .looks
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

/// Which project it is that has no run at all: elsewhere there may be another.
pub(crate) fn none_in(project: &Path) -> String {
    format!("the project {} has no runs", project.display())
}

fn no_runs(project: &Project) -> Failure {
    Failure::usage(none_in(project.root.project()))
        .hint("`raymond run WORKFLOW` starts one; `raymond init` writes a workflow to begin with")
}

fn last(project: &Project) -> Result<RunId, Failure> {
    let Survey { looks, unreadable, .. } = survey(project)?;
    match (looks.first(), unreadable.is_empty()) {
        (Some(look), _) => Ok(look.header.run.clone()),
        (None, true) => Err(no_runs(project)),
        (None, false) => {
            Err(Failure::usage("no run of this project can be read").hint("see `raymond list`"))
        }
    }
}
