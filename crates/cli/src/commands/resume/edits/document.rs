//! Decides whether a resume can use the edited document of a run.
//!
//! [`raymond_core::crayfish::edits`] compares the documents; only this file knows the words for it.

use std::collections::BTreeMap;

use raymond_core::crayfish::edits::{Conflict, Edits};
use raymond_core::crayfish::{StepId, StepsDefinition};
use raymond_core::decide::{Refusal, check_adoption};
use raymond_core::run::{Program, Run, Settings};
use raymond_core::view;
use raymond_core::workflow::Definition;

use crate::documents;
use crate::failure::Failure;
use crate::settings::document_vars;

use super::EditDecision;

/// Most edits that a message names. A document may have a million steps.
const MOST_NAMED: usize = 10;

/// Compares the document on disk with the pinned one, and decides to use it. A run whose finished
/// steps were edited is refused.
pub(super) fn adopt(
    run: &Run,
    pinned: &Definition,
    settings: &Settings,
) -> Result<EditDecision, Failure> {
    let current = documents::current(run, settings)?;
    let (Some(before), Some(now), Some(state)) =
        (pinned.steps.as_deref(), current.definition.steps.as_deref(), run.program.steps())
    else {
        return Ok(EditDecision { adopt: None, changed: Vec::new(), line: None });
    };
    if before == now {
        return unchanged(run);
    }
    let edits = Edits::between(before, now, state);
    if !edits.conflicts.is_empty() {
        return Err(conflict(run, &edits.conflicts));
    }
    check_adoption(run, &current.definition).map_err(|refusal| refused(run, &refusal))?;
    let line = format!("using the current document: {}", describe(&edits, before, now));
    Ok(EditDecision { adopt: Some(current), changed: edits.changed, line: Some(line) })
}

/// Refuses variables for a run that cannot change them.
pub(in crate::commands::resume) fn check_variables(
    run: &Run,
    edits: super::ResumeEdits,
) -> Result<(), Failure> {
    match (&run.program, edits) {
        (Program::Steps(_), super::ResumeEdits::Adopt) => Ok(()),
        (Program::Steps(_), super::ResumeEdits::Undecided | super::ResumeEdits::Ignore) => {
            Err(Failure::usage(format!("{} keeps the variables of its start", run.id)).hint(
                "with --with-current, a resume can change variables that no finished step uses",
            ))
        }
        (Program::States | Program::Ralph(_), _) => {
            Err(Failure::usage("--var can be set only when a run starts")
                .hint("start a new run with `raymond run`"))
        }
    }
}

/// Returns the variables of a run with those of a resume in their place.
pub(in crate::commands::resume) fn with_variables(
    run: &Run,
    pairs: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    let given = document_vars(pairs)?;
    let mut vars = run.settings.vars.clone();
    // A name is recorded with a colon if its value is JSON.
    vars.retain(|name, _| !given.values.contains_key(name.trim_end_matches(':')));
    vars.extend(given.typed);
    Ok(vars)
}

/// Uses the pinned document, unless the run would fail in the same way again.
fn unchanged(run: &Run) -> Result<EditDecision, Failure> {
    if view::is_final(run) {
        let message = format!("{} has not changed since {} started", run.workflow, run.id);
        return Err(Failure::usage(message)
            .hint("the run would end in the same way again; fix the document first"));
    }
    Ok(EditDecision { adopt: None, changed: Vec::new(), line: None })
}

fn conflict(run: &Run, conflicts: &[Conflict]) -> Failure {
    let described = conflicts.iter().map(|conflict| match conflict {
        Conflict::Changed { step, differences } => {
            let has = if differences.len() == 1 { "has" } else { "have" };
            format!("{step} is finished, but {} {has} changed", differences.join(", "))
        }
        Conflict::Returned { step } => {
            format!("{step} was removed by an earlier edit, and its results are still there")
        }
        Conflict::FewerAttempts { step, attempts } => {
            format!("{step} has had {attempts} attempts, more than its `retries` now allow")
        }
        Conflict::EndedLoop { step } => {
            format!("the limits of the loop {step} have changed, but a step behind it is finished")
        }
    });
    let message = format!("{} cannot use {}: {}", run.id, run.workflow, listed(described, "; "));
    Failure::usage(message).hint(format!(
        "undo these changes, or give a changed step another id, so that it runs as a new step; \
         to use the original document: raymond resume {} --pinned",
        run.id
    ))
}

fn refused(run: &Run, refusal: &Refusal) -> Failure {
    let id = &run.id;
    let hint = match refusal {
        Refusal::TurnInFlight(_) => {
            format!("run `raymond stop {id}`, then `raymond resume {id} --with-current`")
        }
        _ => format!("undo the change, or run `raymond resume {id} --pinned`"),
    };
    Failure::usage(refusal.to_string()).hint(hint)
}

/// Lists the edits: `judge (changed), notify (added)`.
fn describe(edits: &Edits, before: &StepsDefinition, now: &StepsDefinition) -> String {
    let words = [("changed", &edits.changed), ("added", &edits.added), ("removed", &edits.removed)];
    let steps = words.into_iter().flat_map(|(word, steps)| {
        steps.iter().map(move |step: &StepId| format!("{step} ({word})"))
    });
    let has_other_vars = before.vars != now.vars;
    let rest =
        [("variables", has_other_vars), ("output", before.document.output != now.document.output)];
    let rest = rest.into_iter().filter(|(_, differs)| *differs);
    let all: Vec<String> = steps.chain(rest.map(|(word, _)| word.to_owned())).collect();
    if all.is_empty() { "no step differs".to_owned() } else { listed(all.into_iter(), ", ") }
}

fn listed(items: impl Iterator<Item = String>, between: &str) -> String {
    let mut items: Vec<String> = items.collect();
    let more = items.len().saturating_sub(MOST_NAMED);
    items.truncate(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", items.join(between))
}
