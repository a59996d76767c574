//! Finds the run that the user means, and reads runs with errors that a user understands.
//!
//! A run is named by its id, a unique prefix of the id, or `@last`. Reading goes through
//! `raymond_engine::inspect`; this module only tells apart runs that never started, lost their
//! journal or cannot be read.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use raymond_core::ids::RunId;
use raymond_core::run::Record;
use raymond_core::view::gave_up;
use raymond_engine::discard::{self, Traces};
use raymond_engine::inspect::{self, InspectError, Inspection};
use raymond_engine::project::Project;
use raymond_store::journal::Tail;

use crate::failure::{Failure, no_runs_in};

/// Finds the project of the current directory.
pub(crate) fn project() -> Result<Project, Failure> {
    Ok(Project::locate(&current_directory()?)?)
}

pub(crate) fn current_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::environment(format!("could not read the current directory: {error}"))
    })
}

/// Finds a run by its id, a unique prefix of it, or `@last`.
pub(crate) fn find(project: &Project, wanted: &str) -> Result<RunId, Failure> {
    match wanted {
        "@last" => last(project),
        wanted => Ok(project.find(wanted)?),
    }
}

/// Finds the named run, or the last one.
pub(crate) fn named_or_last(project: &Project, wanted: Option<&str>) -> Result<RunId, Failure> {
    find(project, wanted.unwrap_or("@last"))
}

/// Reads a run; fails if it never started or cannot be read.
pub(crate) fn look(project: &Project, run: &RunId) -> Result<Inspection, Failure> {
    match examine(project, run) {
        Examined::Readable(look) | Examined::Damaged(look) => Ok(*look),
        Examined::NeverStarted => Err(Failure::never_started(run)),
        Examined::Lost => Err(journal_missing(project, run)),
        Examined::Unreadable(error) => Err(Failure::from(error).naming_run(run)),
    }
}

/// Returns all readable records of a run.
pub(crate) fn records(seen: &Inspection) -> impl Iterator<Item = Result<Record, Failure>> {
    let unread = |error| Failure::from(error).naming_run(&seen.header.run);
    seen.records().map(move |record| record.map_err(unread))
}

/// Prints where the readable records end, if damaged ones follow.
pub(crate) fn report_damage(seen: &Inspection) {
    if let Tail::Damaged(damaged) = &seen.journal.tail {
        crate::say!("{}: showing only the records before the damage: {damaged}", seen.head.run.id);
    }
}

/// Refuses a run that never started or lost its journal; accepts any other damage, because a rewind
/// may discard it.
pub(crate) fn check_started(project: &Project, run: &RunId) -> Result<(), Failure> {
    match examine(project, run) {
        Examined::NeverStarted => Err(Failure::never_started(run)),
        Examined::Lost => Err(journal_missing(project, run)),
        Examined::Readable(_) | Examined::Damaged(_) | Examined::Unreadable(_) => Ok(()),
    }
}

/// Whether a run has records, or had some, or is about to write its first one.
pub(crate) fn is_started(project: &Project, run: &RunId) -> bool {
    !matches!(examine(project, run), Examined::NeverStarted)
}

/// The failure for a run that has started but whose journal has no records any more.
pub(crate) fn journal_missing(project: &Project, run: &RunId) -> Failure {
    let paths = project.paths(run);
    let (journal, folder) = (paths.journal.display(), paths.directory.display());
    Failure::environment(format!("{run}: the journal is missing or empty"))
        .hint(format!("restore {journal} from a copy; if there is none, check and delete {folder}"))
}

/// The readable state of a run.
pub(crate) enum Examined {
    Readable(Box<Inspection>),
    /// Not even the first record is intact.
    Damaged(Box<Inspection>),
    NeverStarted,
    /// The run has started, but its journal is missing or empty.
    Lost,
    Unreadable(InspectError),
}

/// Reads a run and classifies what it finds.
pub(crate) fn examine(project: &Project, run: &RunId) -> Examined {
    match inspect::inspect(project, run) {
        Ok(look) if look.head.seq > 0 => Examined::Readable(Box::new(look)),
        Ok(look) => match (&look.journal.tail, &look.owner) {
            (Tail::Damaged(_), _) => Examined::Damaged(Box::new(look)),
            // A live owner is about to record the start, so the run counts as readable.
            (Tail::Clean | Tail::Torn(_), Some(_)) => Examined::Readable(Box::new(look)),
            (Tail::Clean | Tail::Torn(_), None) => never_started_or_lost(project, run),
        },
        // A directory without a journal: either the creation was interrupted, or the journal was
        // deleted.
        Err(InspectError::Journal(error)) if error.is_missing() => {
            never_started_or_lost(project, run)
        }
        Err(error) => Examined::Unreadable(error),
    }
}

/// Classifies a run without records and without an owner by the other files in its directory.
fn never_started_or_lost(project: &Project, run: &RunId) -> Examined {
    match discard::traces(project, run) {
        // The values of the definition are stored before record 1, so they do not prove that the
        // run started.
        Traces::None | Traces::Values => Examined::NeverStarted,
        Traces::OfWork => Examined::Lost,
    }
}

/// All runs of a project.
#[derive(Default)]
pub(crate) struct AllRuns {
    /// Runs that can be read, the latest start first.
    pub(crate) looks: Vec<Inspection>,
    /// Runs that never started, by name.
    pub(crate) never_started: Vec<RunId>,
    /// Runs that cannot be read, by name.
    pub(crate) unreadable: Vec<RunId>,
}

impl AllRuns {
    pub(crate) fn is_empty(&self) -> bool {
        self.looks.is_empty() && self.never_started.is_empty() && self.unreadable.is_empty()
    }
}

/// Reads every run of the project.
pub(crate) fn read_all(project: &Project) -> Result<AllRuns, Failure> {
    let mut all = AllRuns::default();
    for run in project.runs()? {
        match examine(project, &run) {
            Examined::Readable(look) => all.looks.push(*look),
            Examined::NeverStarted => all.never_started.push(run),
            Examined::Damaged(_) | Examined::Lost | Examined::Unreadable(_) => {
                all.unreadable.push(run);
            }
        }
    }
    // By recorded time and not by file time, which a copy or a resume changes.
    all.looks.sort_by_key(|look| Reverse(look.head.ledger.started_at));
    Ok(all)
}

/// Returns the path of a workflow, relative to the project if it is inside. The journal contains
/// absolute paths, which are too long for a table.
pub(crate) fn relative_workflow(workflow: &str, project: &Path) -> String {
    match Path::new(workflow).strip_prefix(project) {
        Ok(path) if !path.as_os_str().is_empty() => path.display().to_string(),
        Ok(_) | Err(_) => workflow.to_owned(),
    }
}

/// Finds the only run that is unfinished and has no owner.
pub(crate) fn only_unfinished(project: &Project) -> Result<RunId, Failure> {
    let all = read_all(project)?;
    if all.looks.is_empty() && all.unreadable.is_empty() {
        return Err(no_runs(project));
    }
    let unfinished: Vec<RunId> = all
        .looks
        .into_iter()
        .filter(|look| {
            look.status.is_unfinished() && look.owner.is_none() && !gave_up(&look.head.run)
        })
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

fn no_runs(project: &Project) -> Failure {
    Failure::usage(no_runs_in(project.root.project())).hint(
        "`raymond run WORKFLOW` starts one; `raymond list --all` shows the runs of your other \
             projects",
    )
}

/// Finds the run that started last, without folding every run.
fn last(project: &Project) -> Result<RunId, Failure> {
    let (mut runs, mut is_any_unreadable) = (Vec::new(), false);
    for run in project.runs()? {
        // Only a few bytes of most runs are read. A run whose beginning cannot be parsed is read
        // completely, because it may be readable after all.
        let started = inspect::unverified_start(project, &run).or_else(|| {
            let Examined::Readable(look) = examine(project, &run) else { return None };
            Some(look.head.ledger.started_at)
        });
        runs.push((started, run));
    }
    // By recorded time and not by file time, which a copy or a resume changes.
    runs.sort_by_key(|(started, _)| Reverse(*started));
    for (_, run) in runs {
        // A damaged first record can name any time, but such a run does not count as readable.
        match examine(project, &run) {
            Examined::Readable(_) => return Ok(run),
            Examined::NeverStarted => {}
            Examined::Damaged(_) | Examined::Lost | Examined::Unreadable(_) => {
                is_any_unreadable = true;
            }
        }
    }
    if is_any_unreadable {
        return Err(
            Failure::usage("could not read any run of this project").hint("see `raymond list`")
        );
    }
    Err(no_runs(project))
}
