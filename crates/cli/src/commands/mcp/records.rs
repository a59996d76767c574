//! The record of a run for MCP clients: `raymond status --json` and the steps.

use std::collections::BTreeMap;

use raymond_core::crayfish::Document;
use raymond_core::crayfish::key::StepKey;
use raymond_core::crayfish::state::{Position, StepsState};
use raymond_core::ids::{AgentId, RunId};
use raymond_core::run::{Phase, Run};
use raymond_engine::inspect::Inspection;
use raymond_engine::pin::Pin;
use raymond_engine::project::Project;
use raymond_store::Blobs;
use serde_json::{Value as Json, json};

use crate::json;
use crate::runs::{self, Examined};
use crate::secrets::{redacted, redacted_json};
use crate::status_summary::StatusSummary;

/// Returns the status of a run in one line.
pub(super) fn summary(project: &Project, run: &RunId) -> String {
    match runs::examine(project, run) {
        Examined::Readable(look) | Examined::Damaged(look) => {
            let StatusSummary { status, why, .. } = StatusSummary::seen(project, &look);
            redacted(&format!("{status}: {why}")).into_owned()
        }
        Examined::NeverStarted => "the run never started".to_owned(),
        Examined::Lost => "the journal is missing".to_owned(),
        Examined::Unreadable(error) => redacted(&error.to_string()).into_owned(),
    }
}

/// Returns the record of a run; `None` if the run does not exist.
pub(super) fn record(project: &Project, run: &RunId) -> Result<Option<Json>, String> {
    let known = project.runs().map_err(|error| error.to_string())?;
    if !known.contains(run) {
        return Ok(None);
    }
    let look = runs::look(project, run)
        .map_err(|failure| redacted(&failure.message_and_hint().0).into_owned())?;
    Ok(Some(shown(project, &look)))
}

fn shown(project: &Project, look: &Inspection) -> Json {
    let run = &look.head.run;
    let blobs = project.blobs(&project.paths(&run.id));
    let place = StatusSummary::seen(project, look).with_retries(project, look).with_processes(look);
    let mut object = json::run(&place.view(&look.head), &place);
    if let Some(flow) = run.program.steps() {
        object["steps"] = steps(run, flow, document(run, &blobs).as_ref());
    }
    // Before the results are added: results are data for the caller and stay unchanged.
    let mut object = redacted_json(object);
    object["results"] = json::results(&look.head, &blobs);
    object
}

/// Returns the document of a run, if it can be read.
fn document(run: &Run, blobs: &Blobs) -> Option<Document> {
    let definition = Pin::definition_of(run, blobs).ok()?;
    Some(definition.steps?.document.clone())
}

/// Returns every step that was reached, in the order of a walk. Outputs of steps are in the
/// results.
fn steps(run: &Run, flow: &StepsState, document: Option<&Document>) -> Json {
    let mut states: BTreeMap<StepKey, &str> = BTreeMap::new();
    states.extend(flow.branches.keys().filter_map(|id| at(run, flow, id)));
    let done = |ok: bool| if ok { "done" } else { "failed" };
    // Behind the branches, so that a recorded result wins over the position of its branch.
    states.extend(flow.results.iter().map(|(key, stored)| (key.clone(), done(stored.ok))));
    let mut states: Vec<(StepKey, &str)> = states.into_iter().collect();
    if let Some(document) = document {
        states.sort_by_cached_key(|(key, _)| document.walk_position(key));
    }
    let entries = states.into_iter().map(|(key, state)| {
        let mut step =
            json!({ "key": key.to_string(), "stepId": key.step.as_str(), "state": state });
        if let Some(attempt) = flow.attempts.get(&key) {
            step["attempt"] = json!(attempt);
        }
        step
    });
    entries.collect()
}

/// Returns the current step of a branch, and its activity.
fn at(run: &Run, flow: &StepsState, id: &AgentId) -> Option<(StepKey, &'static str)> {
    let key = run.agents.get(id)?.visit.location.step()?.clone();
    let owed = run.program.is_answered_by_caller();
    let state = match &flow.branches.get(id)?.at {
        // Only agent steps count attempts here.
        Position::In(_) if owed && flow.attempts.contains_key(&key) => "asked",
        Position::In(_) if matches!(run.phase, Phase::Ended(_)) => "stopped",
        Position::In(_) => "running",
        Position::Failed(_) => "failed",
        Position::Start
        | Position::Before(_)
        | Position::Behind(_)
        | Position::Body
        | Position::Round
        | Position::Waits { .. } => {
            return None;
        }
    };
    Some((key, state))
}
