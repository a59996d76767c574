//! Decides whether a resume uses states, or a document, that were edited since the run started.
//!
//! Without a flag, a stopped run keeps its pinned states and reports the edits. A failed run
//! refuses to guess, because the user may have edited a state to fix the failure.

mod document;

use raymond_core::agent::Location;
use raymond_core::crayfish::StepId;
use raymond_core::ids::{RunId, StateName};
use raymond_core::run::settings::Pinning;
use raymond_core::run::{Ending, Phase, Program, Run, Settings};
use raymond_core::view::States;
use raymond_core::workflow::Definition;
use raymond_core::workflow::manifest::Changes;
use raymond_engine::driver::Head;
use raymond_engine::prepare::{PrepareError, Prepared, prepare};

use crate::documents;
use crate::failure::{Failure, USAGE};

pub(super) use document::{check_variables, with_variables};

/// The user's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResumeEdits {
    /// No flag: refuse to guess for a failed run.
    Undecided,
    Adopt,
    Ignore,
}

/// The decision about edited states.
#[derive(Debug)]
pub(super) struct EditDecision {
    /// The edited states or the edited document, if they are used.
    pub(super) adopt: Option<Prepared>,
    /// The edited steps of the document.
    pub(super) changed: Vec<StepId>,
    /// A note for the user.
    pub(super) line: Option<String>,
}

/// Compares the workflow with `pinned`, and decides which states to use.
pub(super) fn decide_edits(
    head: &Head,
    pinned: &Definition,
    edits: ResumeEdits,
    settings: &Settings,
) -> Result<EditDecision, Failure> {
    let run = &head.run;
    let as_pinned =
        |line: Option<String>| Ok(EditDecision { adopt: None, changed: Vec::new(), line });
    // After a failure both choices are plausible: the edit may be the fix, or an unrelated change.
    let failed = run.phase == Phase::Ended(Ending::Failed);
    match (&run.program, edits) {
        (Program::Steps(_), ResumeEdits::Adopt) => return document::adopt(run, pinned, settings),
        (Program::Steps(_), ResumeEdits::Undecided | ResumeEdits::Ignore) => {
            let change = match documents::compare(run, pinned) {
                States::AsPinned => return as_pinned(None),
                States::Edited => "has changed since",
                States::Unusable => "is not valid any more",
            };
            let document = &run.workflow;
            if edits == ResumeEdits::Undecided && failed {
                return Err(choice(&run.id, "document", &format!("{document} {change}")));
            }
            let line = format!("continuing with the original document: {document} {change}");
            return as_pinned(Some(line));
        }
        (Program::States | Program::Ralph(_), _) => {}
    }
    // Unpinned states are read at every visit anyway, so there is nothing to adopt.
    if run.settings.definition == Pinning::Unpinned {
        return as_pinned(None);
    }
    let current = match (prepare(run.workflow.as_ref(), &run.program), edits) {
        (Ok(current), _) => current,
        // The user has chosen the pinned states, so a broken workflow does not matter.
        (Err(_), ResumeEdits::Ignore) => return as_pinned(None),
        (Err(error), ResumeEdits::Adopt) => return Err(unusable(run, error)),
        (Err(error), ResumeEdits::Undecided) if failed => return Err(unusable(run, error)),
        (Err(_), ResumeEdits::Undecided) => {
            let line = "continuing with the pinned states: could not read the workflow";
            return as_pinned(Some(line.to_owned()));
        }
    };
    let changes = current.definition.manifest().changes_since(&pinned.manifest());
    if changes.is_empty() {
        return as_pinned(None);
    }
    let changed = describe(head, &changes);
    match edits {
        ResumeEdits::Adopt => {
            let line = format!("using the current states: {changed}");
            Ok(EditDecision { adopt: Some(current), changed: Vec::new(), line: Some(line) })
        }
        ResumeEdits::Undecided if failed => {
            let id = &run.id;
            Err(choice(id, "states", &format!("states changed since {id} started: {changed}")))
        }
        ResumeEdits::Undecided => as_pinned(Some(format!(
            "continuing with the pinned states; changed since: {changed} (--with-current uses the changes)"
        ))),
        ResumeEdits::Ignore => {
            as_pinned(Some(format!("continuing with the pinned states; changed since: {changed}")))
        }
    }
}

/// The failure that asks for a choice between the edited and the pinned files.
fn choice(run: &RunId, what: &str, change: &str) -> Failure {
    Failure::usage(change.to_owned()).hint(format!(
        "use the edit with `raymond resume {run} --with-current`, \
         or the pinned {what} with `raymond resume {run} --pinned`"
    ))
}

/// The failure for an edited workflow that is not valid.
fn unusable(run: &Run, error: PrepareError) -> Failure {
    let id = &run.id;
    let hint = format!(
        "fix it and run `raymond resume {id} --with-current`, \
         or use the pinned states with `raymond resume {id} --pinned`"
    );
    Failure::from(error).code(USAGE).hint(hint).within(run.workflow.as_ref())
}

/// Lists the changed states, and whether they were visited.
fn describe(head: &Head, changes: &Changes) -> String {
    // The ledger contains the visits of ended agents. A visit whose first turn was interrupted
    // together with its owner is only in the agent.
    let visited = |name: &StateName| {
        head.ledger.spending.contains_key(&Location::State(name.clone()))
            || head.run.agents.values().any(|agent| agent.visits.contains_key(name))
    };
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
