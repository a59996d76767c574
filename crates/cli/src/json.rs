//! What `--json` prints: one value, whose shape has a version.

use raymond_core::ids::RunId;
use raymond_core::machine::{Agent, Standing};
use raymond_core::run::{Program, Ralph, Run};
use raymond_core::value::Value;
use raymond_core::view::denied::{Denied, Group};
use raymond_core::view::{Ledger, Plan};
use raymond_engine::driver::Head;
use raymond_store::Blobs;
use serde_json::{Map, json};

use crate::place::Place;

/// The version of these shapes.
pub(crate) const VERSION: u32 = 1;

/// A run: what `run`, `resume`, `status` and `list` print.
pub(crate) fn run(head: &Head, place: &Place) -> serde_json::Value {
    let Head { run, ledger, .. } = head;
    let mut agents: Vec<&Agent> = run.agents.values().collect();
    agents.sort_by_key(|agent| agent.born);
    let mut object = json!({
        "version": VERSION,
        "run_id": run.id,
        "workflow": run.workflow,
        "status": place.status.as_str(),
        "why": place.why,
        "way_out": place.way_out,
        "left_running": place.left_running,
        "spent_usd": run.spent.dollars(),
        "budget_usd": run.settings.budget.map(raymond_core::budget::Micros::dollars),
        "started_at": ledger.started_at.to_string(),
        "updated_at": ledger.updated_at.to_string(),
        "visits": run.visits,
        "turns": ledger.settled.turns,
        "estimated_usd": ledger.estimated.dollars(),
        "unpriced_turns": run.unpriced,
        "denied": denied(run, ledger),
        "agents": agents.into_iter().map(agent).collect::<Vec<_>>(),
        "ended": ledger.results.len(),
    });
    if let Program::Ralph(Ralph { max_iterations, until }) = &run.settings.program {
        object["ralph"] = json!({
            "max_iterations": max_iterations,
            "until": until,
            "exhausted": ledger.exhausted.is_some(),
        });
    }
    object
}

/// What a resume will do: `resume --plan`.
pub(crate) fn plan(run: &RunId, plan: &Plan, states: Option<&str>) -> serde_json::Value {
    json!({
        "version": VERSION,
        "run_id": run,
        "reused_turns": plan.reused,
        "reused_usd": plan.amount.dollars(),
        "finished_meanwhile": plan.finished,
        "adopting": plan.adopted,
        "continuing": plan.continuing,
        "repeating": plan.repeating,
        "states": states,
    })
}

/// The tools that clients denied, with the rule that would allow each of them.
pub(crate) fn denied(run: &Run, ledger: &Ledger) -> serde_json::Value {
    let allowed = &run.settings.permissions.allow;
    let groups =
        Denied::of(&ledger.denied, allowed).map(|denied| denied.groups).unwrap_or_default();
    let group =
        |group: Group| json!({ "tool": group.name, "calls": group.calls, "allow": group.allow });
    groups.into_iter().map(group).collect()
}

fn agent(agent: &Agent) -> serde_json::Value {
    let (standing, failure) = match &agent.standing {
        Standing::Live => ("live", None),
        Standing::Held(_) => ("waiting: agents", None),
        Standing::Failed { failure, .. } => ("failed", Some(failure.to_string())),
    };
    json!({
        "id": agent.id,
        "state": agent.visit.state,
        "visit": agent.visits.get(&agent.visit.state),
        "depth": agent.stack.len(),
        "cwd": agent.cwd,
        "standing": standing,
        "failure": failure,
    })
}

/// The results of all agents that ended.
pub(crate) fn results(head: &Head, blobs: &Blobs) -> serde_json::Value {
    let results = head.ledger.results.iter();
    let results: Map<String, serde_json::Value> =
        results.map(|(agent, value)| (agent.to_string(), text(value, blobs))).collect();
    results.into()
}

fn text(value: &Value, blobs: &Blobs) -> serde_json::Value {
    raymond_engine::observe::load(blobs, value).map_or(serde_json::Value::Null, Into::into)
}
