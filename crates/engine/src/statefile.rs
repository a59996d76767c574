//! The state file: a run as one JSON object, for people and their tools.
//!
//! Raymond never reads it. The journal is the truth; this file may be stale after a crash and is
//! written again. This module decides the content; `raymond_store::statefile` replaces the file.
//! docs/durability.md describes the fields.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use raymond_core::agent::{Agent, AgentStatus, Frame, Session};
use raymond_core::budget::Micros;
use raymond_core::crayfish::reading;
use raymond_core::few::Few;
use raymond_core::ids::{AgentId, RunId, StateName};
use raymond_core::run::Run;
use raymond_core::value::{BlobRef, Value};
use raymond_core::view::{Ledger, Status};
use raymond_store::disk::Disk;
use raymond_store::lock::Takeover;
use raymond_store::statefile;
use serde::{Serialize, Serializer};
use serde_json::{Map, json};

use crate::driver::Head;
use crate::git_tracked;
use crate::project::Project;
use crate::run_lock::take_lock;

/// The largest result in bytes that the state file contains. A larger one is only referred to, so
/// that the file stays readable.
const LARGEST_PAYLOAD: u64 = 1024;

/// Writes the state file of a run.
pub fn write(disk: &dyn Disk, path: &Path, head: &Head, status: Status) -> io::Result<()> {
    statefile::replace(disk, path, &render(head, status)?).map_err(io::Error::other)
}

/// Returns the content of the state file.
pub fn render(head: &Head, status: Status) -> serde_json::Result<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(&State::of(&head.run, &head.ledger, status))?;
    json.push(b'\n');
    Ok(json)
}

/// Writes the state file of a run that has ended, and removes temporary files: its owner may have
/// died before it did so.
///
/// Errors are ignored, because the file is derived from the journal. Nothing is written if another
/// process owns the run, if a link leads elsewhere, or if the run came with the repository.
pub fn refresh(project: &Project, head: &Head, status: Status, takeover: Takeover) {
    let paths = project.paths(&head.run.id);
    let disk = project.disk.as_ref();
    if paths.refuse_links(disk).is_err() || git_tracked::check(project, &head.run.id).is_err() {
        return;
    }
    // Under the lock, so that a living owner and this process do not write the file at the same
    // time.
    let Ok(_lock) = take_lock(project, &paths, takeover) else { return };
    paths.sweep(disk).ok();
    write(disk, &paths.state, head, status).ok();
}

/// The state file, with its fields in order of name. It borrows from the run instead of copying it,
/// because there may be ten thousand agents.
#[derive(Serialize)]
struct State<'r> {
    #[serde(serialize_with = "agents")]
    agents: &'r Run,
    budget_usd: Option<f64>,
    fork_counters: BTreeMap<&'r AgentId, u32>,
    iteration_count: u64,
    metadata: Map<String, serde_json::Value>,
    #[serde(serialize_with = "results")]
    results: &'r Run,
    scope: &'r str,
    started_at: String,
    status: &'static str,
    total_cost_usd: f64,
    updated_at: String,
    workflow_id: &'r RunId,
}

#[derive(Serialize)]
struct AgentEntry<'r> {
    current_state: String,
    cwd: &'r str,
    failure: Option<String>,
    fork_attributes: &'r Few<String, Value>,
    id: &'r AgentId,
    session_id: Option<&'r str>,
    stack: Vec<Caller<'r>>,
    status: &'static str,
    visits: &'r BTreeMap<StateName, u32>,
    // Only for parked agents: the other keys are those that the first Raymond wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_until: Option<String>,
}

#[derive(Serialize)]
struct Caller<'r> {
    session: Option<&'r str>,
    state: &'r StateName,
}

/// A result. A large one is only referred to.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown<'r> {
    Text(&'r str),
    InJournal { journal: bool, length: u64 },
    Blob(&'r BlobRef),
}

impl<'r> State<'r> {
    fn of(run: &'r Run, ledger: &'r Ledger, status: Status) -> Self {
        Self {
            agents: run,
            budget_usd: run.settings.budget.map(Micros::dollars),
            fork_counters: run.forks(),
            iteration_count: run.visits,
            metadata: metadata(&run.settings.vars),
            results: run,
            scope: &run.scope,
            started_at: ledger.started_at.to_string(),
            status: status.as_str(),
            total_cost_usd: run.spent.dollars(),
            updated_at: ledger.updated_at.to_string(),
            workflow_id: &run.id,
        }
    }
}

/// Returns the variables of a run. A name that ends with a colon has a JSON value.
fn metadata(vars: &BTreeMap<String, String>) -> Map<String, serde_json::Value> {
    let meant = |(name, text): (&String, &String)| {
        // A value that is not JSON after all is shown as text, with its full name.
        let json = name.strip_suffix(':').zip(reading::read_text(text).ok());
        json.map_or_else(|| (name.clone(), json!(text)), |(name, value)| (name.to_owned(), value))
    };
    vars.iter().map(meant).collect()
}

fn agents<S: Serializer>(run: &Run, serializer: S) -> Result<S::Ok, S::Error> {
    // In order of creation, which a reader expects; the map is in order of name.
    let mut agents: Vec<&Agent> = run.agents.values().collect();
    agents.sort_by_key(|agent| agent.born);
    serializer.collect_seq(agents.into_iter().map(agent_entry))
}

fn agent_entry(agent: &Agent) -> AgentEntry<'_> {
    let (status, failure) = match &agent.status {
        AgentStatus::Live => ("live", None),
        AgentStatus::Held(_) => ("waiting: agents", None),
        AgentStatus::Parked(_) => ("waiting: time", None),
        AgentStatus::Joining(_) => ("waiting: workers", None),
        AgentStatus::Asking(_) => ("waiting: answer", None),
        AgentStatus::Cancelling(_) => ("cancelling", None),
        AgentStatus::Failed { failure, .. } => ("failed", Some(failure.to_string())),
    };
    AgentEntry {
        current_state: agent.visit.location.to_string(),
        cwd: &agent.cwd,
        failure,
        fork_attributes: &agent.attributes,
        id: &agent.id,
        session_id: session(&agent.session),
        stack: agent.stack.iter().map(caller).collect(),
        status,
        visits: &agent.visits,
        waits_until: match &agent.status {
            AgentStatus::Parked(parked) => Some(parked.until.to_string()),
            AgentStatus::Joining(joining) => joining.until.map(|until| until.to_string()),
            AgentStatus::Asking(asking) => asking.due().map(|due| due.to_string()),
            AgentStatus::Live
            | AgentStatus::Held(_)
            | AgentStatus::Cancelling(_)
            | AgentStatus::Failed { .. } => None,
        },
    }
}

fn caller(frame: &Frame) -> Caller<'_> {
    Caller { session: session(&frame.session), state: &frame.state }
}

fn session(session: &Session) -> Option<&str> {
    match session {
        Session::Fresh => None,
        Session::At(id) | Session::BranchOf(id) => Some(id.as_str()),
    }
}

fn results<S: Serializer>(run: &Run, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(run.results().map(|(agent, value)| {
        let shown = match value {
            Value::Inline(text) if value.len() <= LARGEST_PAYLOAD => Shown::Text(text),
            Value::Inline(_) => Shown::InJournal { journal: true, length: value.len() },
            Value::Blob(blob) => Shown::Blob(blob),
        };
        (agent, shown)
    }))
}
