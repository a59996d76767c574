//! The candidates for the arguments of commands, for shell completion.
//!
//! Completion changes nothing and prints nothing to stderr. A project that cannot be read has no
//! candidates. `commands::completions` answers the shell.

mod runs;
mod turns;
mod workflows;

use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use raymond_engine::project::Project;

use crate::{examples, known_projects};

/// Completes a run, the last active one first.
pub(crate) fn any_run() -> ArgValueCompleter {
    ArgValueCompleter::new(runs::any)
}

/// Completes a run that can be resumed; any run if none matches.
pub(crate) fn unfinished_run() -> ArgValueCompleter {
    ArgValueCompleter::new(runs::unfinished)
}

/// Completes a run that has an owner; any run if none matches.
pub(crate) fn driven_run() -> ArgValueCompleter {
    ArgValueCompleter::new(runs::driven)
}

/// Completes a workflow.
pub(crate) fn workflow() -> ArgValueCompleter {
    ArgValueCompleter::new(workflows::all)
}

/// Completes a workflow; if nothing is typed, only directories with an entry state.
pub(crate) fn entry_workflow() -> ArgValueCompleter {
    ArgValueCompleter::new(workflows::entries)
}

/// Completes a document of steps.
pub(crate) fn document() -> ArgValueCompleter {
    ArgValueCompleter::new(workflows::documents)
}

/// Completes the prompt of a loop.
pub(crate) fn prompt() -> ArgValueCompleter {
    ArgValueCompleter::new(workflows::prompts)
}

/// Completes an agent of the run that is named earlier in the command line, or of the last run.
pub(crate) fn agent() -> ArgValueCompleter {
    ArgValueCompleter::new(turns::agents)
}

/// Completes a state of that run.
pub(crate) fn state() -> ArgValueCompleter {
    ArgValueCompleter::new(turns::states)
}

/// Completes the name of an example.
pub(crate) fn example() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = examples::names();
        with_prefix(names.map(str::to_owned), current)
    })
}

/// Completes the directory of a registered project.
pub(crate) fn registered_project() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let projects = known_projects::registered().unwrap_or_default().projects;
        let path = |project: &Project| project.root.project().to_str().map(str::to_owned);
        with_prefix(projects.iter().filter_map(path), current)
    })
}

/// Returns the names that start with the typed text.
fn with_prefix(names: impl Iterator<Item = String>, current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    names.filter(|name| name.starts_with(current)).map(CompletionCandidate::new).collect()
}
