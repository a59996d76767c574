//! The record of a run as a client reads it: what `raymond status --json` says, and the steps.

use std::collections::BTreeMap;

use raymond_core::crayfish::flow::{At, Flow};
use raymond_core::crayfish::key::Key;
use raymond_core::crayfish::work::key_of;
use raymond_core::ids::{AgentId, RunId};
use raymond_core::run::Run;
use raymond_engine::look::Look;
use raymond_engine::observe;
use raymond_engine::project::Project;
use raymond_store::Blobs;
use serde_json::{Value as Json, json};

use crate::json;
use crate::place::Place;
use crate::runs::{self, Examined};
use crate::secrets::{redacted, redacted_json};

/// Where a run is, in one line.
pub(super) fn summary(project: &Project, run: &RunId) -> String {
    match runs::examine(project, run) {
        Examined::Readable(look) | Examined::Damaged(look) => {
            let Place { status, why, .. } = Place::seen(project, &look);
            redacted(&format!("{status}: {why}")).into_owned()
        }
        Examined::NeverStarted => "it was never started".to_owned(),
        Examined::Lost => "its journal is gone".to_owned(),
        Examined::Unreadable(error) => redacted(&error.to_string()).into_owned(),
    }
}

/// All that is shown of a run; none when there is no such run.
pub(super) fn record(project: &Project, run: &RunId) -> Result<Option<Json>, String> {
    let known = project.runs().map_err(|error| error.to_string())?;
    if !known.contains(run) {
        return Ok(None);
    }
    let look =
        runs::look(project, run).map_err(|failure| redacted(&failure.told().0).into_owned())?;
    Ok(Some(shown(project, &look)))
}

fn shown(project: &Project, look: &Look) -> Json {
    let run = &look.head.run;
    let blobs = project.blobs(&project.paths(&run.id));
    let place = Place::seen(project, look).with_retries(project, look).with_processes(look);
    let mut object = json::run(&look.head, &place);
    if let Some(flow) = run.flow.as_deref() {
        object["steps"] = steps(run, flow, &blobs);
    }
    let mut object = redacted_json(object);
    object["results"] = json::results(&look.head, &blobs);
    object
}

/// Every step that was reached, by key.
fn steps(run: &Run, flow: &Flow, blobs: &Blobs) -> Json {
    let mut steps: BTreeMap<&Key, Json> = BTreeMap::new();
    let reached: Vec<(Key, &str)> =
        flow.strands.keys().filter_map(|id| at(run, flow, id)).collect();
    for (key, state) in &reached {
        steps.insert(key, json!({ "state": state }));
    }
    for (key, stored) in &flow.results {
        let state = if stored.ok { "done" } else { "failed" };
        let text = observe::load(blobs, &stored.value).ok();
        let result = text.and_then(|text| serde_json::from_str::<Json>(&text).ok());
        steps.insert(key, json!({ "state": state, "result": result }));
    }
    for (key, attempt) in &flow.attempts {
        steps.entry(key).or_insert_with(|| json!({ "state": "asked" }))["attempt"] = json!(attempt);
    }
    let named = steps.into_iter().map(|(key, mut step)| {
        step["key"] = json!(key.to_string());
        step["stepId"] = json!(key.step.as_str());
        step
    });
    named.collect()
}

/// The step that a strand is at, and what it does there.
fn at(run: &Run, flow: &Flow, id: &AgentId) -> Option<(Key, &'static str)> {
    let state = match &flow.strands.get(id)?.at {
        At::In(_) => "running",
        At::Failed(_) => "failed",
        At::Start | At::Before(_) | At::Behind(_) | At::Body | At::Round | At::Waits { .. } => {
            return None;
        }
    };
    Some((key_of(run.agents.get(id)?)?, state))
}
