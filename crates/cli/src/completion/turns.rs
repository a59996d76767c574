//! Completes agents and states of a run for `raymond logs`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use clap_complete::engine::CompletionCandidate;
use raymond_core::run::Event;
use raymond_engine::inspect::{self, Inspection};

use crate::runs;

use super::runs::newest_first;
use super::with_prefix;

pub(super) fn agents(current: &OsStr) -> Vec<CompletionCandidate> {
    entered(current, |event| match event {
        Event::VisitEntered { agent, .. } => Some(agent.to_string()),
        _ => None,
    })
}

pub(super) fn states(current: &OsStr) -> Vec<CompletionCandidate> {
    entered(current, |event| match event {
        Event::VisitEntered { location, .. } => Some(location.stem()),
        _ => None,
    })
}

fn entered(current: &OsStr, name: fn(&Event) -> Option<String>) -> Vec<CompletionCandidate> {
    let Some(seen) = named_or_last_run() else { return Vec::new() };
    let steps = seen.records().map_while(Result::ok).flat_map(|record| record.steps);
    let events = steps.flat_map(|step| step.events);
    let names: BTreeSet<String> = events.filter_map(|event| name(&event)).collect();
    with_prefix(names.into_iter(), current)
}

/// Returns the run that the command line names, or the last one.
fn named_or_last_run() -> Option<Inspection> {
    let project = runs::project().ok()?;
    let all = newest_first(&project);
    let words: Vec<OsString> = std::env::args_os().collect();
    let named = all.iter().find(|run| words.iter().any(|word| word == run.as_str()));
    inspect::inspect(&project, named.or_else(|| all.first())?).ok()
}
