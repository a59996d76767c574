//! States that were edited since a run started: adopted or not, but never by surprise.

use raymond_core::ids::StateName;
use raymond_core::run::settings::Pinning;
use raymond_core::run::{Ending, Phase, Run};
use raymond_core::workflow::Definition;
use raymond_core::workflow::manifest::Changes;
use raymond_engine::launch::{Prepared, prepare};

use crate::failure::Failure;

/// Which states a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edits {
    /// Nothing was said: refuse to guess when it matters.
    Undecided,
    Adopt,
    Ignore,
}

/// Which states the run goes on with.
#[derive(Debug)]
pub(super) struct Weighed {
    /// The edited ones, when they are to be used.
    pub(super) adopt: Option<Prepared>,
    /// What has to be said about it, in one line.
    pub(super) line: Option<String>,
}

/// Weighs what became of the workflow since `pinned`. A failed run does not guess.
pub(super) fn weigh(run: &Run, pinned: &Definition, edits: Edits) -> Result<Weighed, Failure> {
    let as_pinned = |line: Option<String>| Ok(Weighed { adopt: None, line });
    if run.settings.definition == Pinning::Unpinned {
        return as_pinned(None);
    }
    let current = match (prepare(run.workflow.as_ref()), edits) {
        (Ok(current), _) => current,
        (Err(_), Edits::Ignore) => return as_pinned(None),
        (Err(error), Edits::Adopt) => return Err(error.into()),
        (Err(_), Edits::Undecided) => {
            let line = "goes on as pinned: the workflow cannot be read any more";
            return as_pinned(Some(line.to_owned()));
        }
    };
    let changes = current.definition.manifest().changes_since(&pinned.manifest());
    if changes.is_empty() {
        return as_pinned(None);
    }
    let changed = describe(run, &changes);
    let failed = run.phase == Phase::Ended(Ending::Failed);
    match edits {
        Edits::Adopt => {
            let line = format!("adopts the states as they are now: {changed}");
            Ok(Weighed { adopt: Some(current), line: Some(line) })
        }
        Edits::Undecided if failed => Err(choice(run, &changed)),
        Edits::Undecided | Edits::Ignore => {
            as_pinned(Some(format!("goes on as pinned; changed since: {changed}")))
        }
    }
}

fn choice(run: &Run, changed: &str) -> Failure {
    let id = &run.id;
    Failure::usage(format!("states changed since {id} started: {changed}")).hint(format!(
        "use them with `raymond resume {id} --with-current`, \
         or go on with those of the start: `raymond resume {id} --pinned`"
    ))
}

/// Which states changed, and which of them were already visited.
fn describe(run: &Run, changes: &Changes) -> String {
    let visited =
        |name: &StateName| run.agents.values().any(|agent| agent.visits.contains_key(name));
    let words =
        [("edited", &changes.changed), ("added", &changes.added), ("removed", &changes.removed)];
    let parts = words.into_iter().flat_map(|(word, names)| {
        names.iter().map(move |name| {
            let seen = if visited(name) { ", already visited" } else { "" };
            format!("{name} ({word}{seen})")
        })
    });
    parts.collect::<Vec<_>>().join(", ")
}
