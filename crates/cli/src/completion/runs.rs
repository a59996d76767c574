//! Completes runs by name.

use std::ffi::OsStr;
use std::time::SystemTime;

use clap_complete::engine::CompletionCandidate;
use raymond_core::ids::RunId;
use raymond_engine::inspect;
use raymond_engine::project::Project;

use crate::runs;

/// Most runs that are read: completion must answer before the user notices a delay.
const MOST_READ: usize = 200;

pub(super) fn any(current: &OsStr) -> Vec<CompletionCandidate> {
    preferring(current, |_, _| true)
}

pub(super) fn unfinished(current: &OsStr) -> Vec<CompletionCandidate> {
    preferring(current, |project, run| {
        let seen = inspect::inspect(project, run);
        seen.is_ok_and(|seen| {
            seen.head.seq > 0 && seen.owner.is_none() && seen.status.is_unfinished()
        })
    })
}

pub(super) fn driven(current: &OsStr) -> Vec<CompletionCandidate> {
    preferring(current, |project, run| matches!(inspect::owner(project, run), Ok(Some(_))))
}

/// Returns the preferred runs that start with the typed text, or all runs that do, and `@last`.
fn preferring(
    current: &OsStr,
    is_preferred: fn(&Project, &RunId) -> bool,
) -> Vec<CompletionCandidate> {
    let (Some(current), Ok(project)) = (current.to_str(), runs::project()) else {
        return Vec::new();
    };
    let all = newest_first(&project);
    let last = (!all.is_empty() && "@last".starts_with(current)).then(|| "@last".to_owned());
    let all: Vec<RunId> = all.into_iter().filter(|run| run.as_str().starts_with(current)).collect();
    let read = all.iter().take(MOST_READ);
    let preferred: Vec<RunId> = read.filter(|run| is_preferred(&project, run)).cloned().collect();
    // A user who asks for a candidate wants one: an unusual choice is better than silence.
    let offered = if preferred.is_empty() { all } else { preferred };
    let names = offered.iter().map(ToString::to_string).chain(last);
    (0..)
        .zip(names)
        .map(|(place, name)| CompletionCandidate::new(name).display_order(Some(place)))
        .collect()
}

pub(super) fn newest_first(project: &Project) -> Vec<RunId> {
    let mut all = project.runs().unwrap_or_default();
    let changed = |run: &RunId| -> Option<SystemTime> {
        // The time of the file, because reading every journal would take too long.
        std::fs::metadata(project.paths(run).journal).and_then(|found| found.modified()).ok()
    };
    all.sort_by_cached_key(|run| std::cmp::Reverse(changed(run)));
    all
}
