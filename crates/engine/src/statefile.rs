//! The state file: a run as one JSON object, for people and their tools. Nothing reads it back.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use raymond_core::crayfish::reading;
use raymond_core::ids::AgentId;
use raymond_core::machine::{Agent, Frame, Session, Standing};
use raymond_core::run::Run;
use raymond_core::value::Value;
use raymond_core::view::{Ledger, Status};
use raymond_store::disk::Disk;
use raymond_store::lock::Takeover;
use raymond_store::statefile;
use serde_json::{Map, json};

use crate::driver::Head;
use crate::owned::take;
use crate::project::Project;
use crate::tracked;

/// A payload larger than this is only referred to.
const LARGEST_PAYLOAD: u64 = 1024;

/// Writes the state file of a run.
pub fn write(disk: &dyn Disk, path: &Path, head: &Head, status: Status) -> io::Result<()> {
    let state = render(&head.run, &head.ledger, status);
    let mut json = serde_json::to_vec_pretty(&state)?;
    json.push(b'\n');
    statefile::replace(disk, path, &json).map_err(io::Error::other)
}

/// Brings the state file of a run that is over up to date, and sweeps: its owner may have died before it did.
///
/// It is derived: where it cannot be written, a link leads elsewhere, the run came with the repository, or
/// somebody drives or deletes it, it stays.
pub fn catch_up(project: &Project, head: &Head, status: Status, takeover: Takeover) {
    let paths = project.paths(&head.run.id);
    let disk = project.disk.as_ref();
    if paths.refuse_links(disk).is_err() || tracked::check(project, &head.run.id).is_err() {
        return;
    }
    let Ok(_lock) = take(project, &paths, takeover) else { return };
    paths.sweep(disk).ok();
    write(disk, &paths.state, head, status).ok();
}

/// The state file of a run.
pub fn render(run: &Run, ledger: &Ledger, status: Status) -> serde_json::Value {
    let mut agents: Vec<&Agent> = run.agents.values().collect();
    agents.sort_by_key(|agent| agent.born);
    json!({
        "workflow_id": run.id,
        "scope": run.scope,
        "status": status.as_str(),
        "started_at": ledger.started_at.to_string(),
        "updated_at": ledger.updated_at.to_string(),
        "budget_usd": run.settings.budget.map(raymond_core::budget::Micros::dollars),
        "total_cost_usd": run.spent.dollars(),
        "iteration_count": run.visits,
        "metadata": metadata(&run.settings.vars),
        "fork_counters": ledger.forks,
        "agents": agents.into_iter().map(agent).collect::<Vec<_>>(),
        "results": results(ledger),
    })
}

/// The variables of a run. Those of a document that were given as JSON have a colon behind their name.
fn metadata(vars: &BTreeMap<String, String>) -> Map<String, serde_json::Value> {
    let meant = |(name, text): (&String, &String)| {
        let json = name.strip_suffix(':').zip(reading::read_text(text).ok());
        json.map_or_else(|| (name.clone(), json!(text)), |(name, value)| (name.to_owned(), value))
    };
    vars.iter().map(meant).collect()
}

fn agent(agent: &Agent) -> serde_json::Value {
    let visits: Map<_, _> =
        agent.visits.iter().map(|(state, n)| (state.to_string(), json!(n))).collect();
    json!({
        "id": agent.id,
        "current_state": agent.visit.state,
        "session_id": session(&agent.session),
        "stack": agent.stack.iter().map(frame).collect::<Vec<_>>(),
        "cwd": agent.cwd,
        "fork_attributes": agent.attributes,
        "status": match &agent.standing {
            Standing::Live => "live",
            Standing::Held(_) => "waiting: agents",
            Standing::Failed { .. } => "failed",
        },
        "failure": match &agent.standing {
            Standing::Failed { failure, .. } => Some(failure.to_string()),
            Standing::Live | Standing::Held(_) => None,
        },
        "visits": visits,
    })
}

fn frame(frame: &Frame) -> serde_json::Value {
    json!({ "session": session(&frame.session), "state": frame.state })
}

fn session(session: &Session) -> Option<&str> {
    match session {
        Session::Fresh => None,
        Session::At(id) | Session::BranchOf(id) => Some(id.as_str()),
    }
}

fn results(ledger: &Ledger) -> Map<String, serde_json::Value> {
    let result = |(agent, value): (&AgentId, &Value)| {
        let shown = match value {
            Value::Inline(text) if value.len() <= LARGEST_PAYLOAD => json!(text),
            Value::Inline(_) => json!({ "journal": true, "length": value.len() }),
            Value::Blob(blob) => json!(blob),
        };
        (agent.to_string(), shown)
    };
    ledger.results.iter().map(result).collect()
}
