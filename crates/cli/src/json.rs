//! The values that `--json` prints.
//!
//! Their shape has a version, and scripts depend on it: add fields, but do not rename or remove
//! any.

use std::fmt::Write as _;

use raymond_core::agent::{Agent, AgentStatus};
use raymond_core::crayfish::reading::{self, Holds};
use raymond_core::crayfish::state::StepsState;
use raymond_core::crayfish::stored::written;
use raymond_core::ids::{BackendName, RunId};
use raymond_core::run::{Program, Ralph, Run};
use raymond_core::value::Value;
use raymond_core::view::denied::{Denied, Group};
use raymond_core::view::plan::Open;
use raymond_core::view::{Fate, Ledger, Plan, answering, place};
use raymond_engine::driver::Head;
use raymond_store::Blobs;
use serde_json::{Map, json};

use crate::sanitize::is_terminal_control;
use crate::status_summary::StatusSummary;

/// The version of these shapes; docs/running.md explains when it changes.
pub(crate) const VERSION: u32 = 1;

/// How a value is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    OneLine,
    Indented,
}

/// Formats a value. Terminal control characters are always escaped, even if stdout is not a
/// terminal, because the text may reach one later.
pub(crate) fn text(value: &serde_json::Value, layout: Layout) -> String {
    let text = match layout {
        Layout::OneLine => written(value),
        Layout::Indented => format!("{value:#}"),
    };
    // JSON itself contains no such characters, and inside texts serde escapes most of them, so the
    // usual text needs no second pass.
    if (text.is_ascii() && !text.contains('\u{7f}')) || !text.contains(is_terminal_control) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_terminal_control(c) {
            write!(escaped, "\\u{:04x}", u32::from(c)).ok();
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Returns a run as `run`, `resume`, `status` and `list` print it.
pub(crate) fn run(head: &Head, place: &StatusSummary) -> serde_json::Value {
    let Head { run, ledger, .. } = head;
    let mut agents: Vec<&Agent> = run.agents.values().collect();
    // The map is ordered by id; readers expect the order of creation.
    agents.sort_by_key(|agent| agent.born);
    let mut object = json!({
        "version": VERSION,
        "run_id": run.id,
        "workflow": run.workflow,
        "status": place.status.as_str(),
        "why": place.why,
        "next_command": place.next_command,
        "left_running": place.left_running,
        "spent_usd": run.spent.dollars(),
        "budget_usd": run.settings.budget.map(raymond_core::budget::Micros::dollars),
        "started_at": ledger.started_at.to_string(),
        "updated_at": ledger.updated_at.to_string(),
        "visits": run.visits,
        "turns": ledger.turns(),
        "paid_turns": ledger.paid.turns,
        "backends": backends(ledger),
        "estimated_usd": ledger.estimated.dollars(),
        "unpriced_turns": run.unpriced,
        "denied": denied(run, ledger),
        "agents": agents.into_iter().map(|one| agent(run, one)).collect::<Vec<_>>(),
        "ended": run.ended.len(),
    });
    if let Program::Ralph(Ralph { until }) = &run.program {
        object["ralph"] = json!({
            "max_iterations": run.settings.max_iterations,
            "until": until,
            "exhausted": ledger.exhausted.is_some(),
        });
    }
    object
}

/// Returns the plan of `resume --plan`.
pub(crate) fn plan(run: &RunId, plan: &Plan, states: Option<&str>) -> serde_json::Value {
    let [finished, adopted, continuing] =
        [Fate::Finished, Fate::Adopted, Fate::Continued].map(|fate| plan.prompts(fate));
    let backend = |backend: &BackendName| {
        json!({
            "backend": backend,
            "finished_meanwhile": finished.of(backend),
            "adopting": adopted.of(backend),
            "continuing": continuing.of(backend),
        })
    };
    let turn = |open: &Open| {
        json!({
            "turn": open.turn,
            "agent": open.turn.agent,
            "state": open.place,
            "backend": plan.backend(open),
            "what": open.fate.as_str(),
        })
    };
    json!({
        "version": VERSION,
        "run_id": run,
        "reused_turns": plan.reused,
        "reused_usd": plan.amount.dollars(),
        "finished_meanwhile": finished.count(),
        "adopting": adopted.count(),
        "continuing": continuing.count(),
        "repeating": plan.repeating(),
        "turns": plan.open.iter().map(turn).collect::<Vec<_>>(),
        "states": states,
        "backends": plan.backends().into_iter().map(backend).collect::<Vec<_>>(),
    })
}

/// Returns the turns and costs of each backend.
fn backends(ledger: &Ledger) -> serde_json::Value {
    let backends = ledger.backends.iter().map(|(backend, spent)| {
        json!({ "backend": backend, "turns": spent.turns, "spent_usd": spent.amount.dollars() })
    });
    backends.collect()
}

/// Returns the denied tools, each with the rule that would allow it.
pub(crate) fn denied(run: &Run, ledger: &Ledger) -> serde_json::Value {
    let allowed = &run.settings.permissions.allow;
    let groups =
        Denied::of(&ledger.denied, allowed).map(|denied| denied.groups).unwrap_or_default();
    let group =
        |group: Group| json!({ "tool": group.name, "calls": group.calls, "allow": group.allow });
    groups.into_iter().map(group).collect()
}

fn agent(run: &Run, agent: &Agent) -> serde_json::Value {
    let (status, failure) = match &agent.status {
        AgentStatus::Live => ("live", None),
        AgentStatus::Held(_) => ("waiting: agents", None),
        AgentStatus::Failed { failure, .. } => ("failed", Some(failure.to_string())),
    };
    json!({
        "id": agent.id,
        "state": place(run, agent),
        "visit": agent.visit_count(),
        "depth": agent.stack.len(),
        "backend": answering(run, agent),
        "cwd": agent.cwd,
        "status": status,
        "failure": failure,
    })
}

/// Returns the results of all ended agents, or of all steps for a document.
pub(crate) fn results(head: &Head, blobs: &Blobs) -> serde_json::Value {
    if let Some(flow) = head.run.program.steps() {
        return steps(flow, blobs).into();
    }
    let results = head.run.results();
    let results: Map<String, serde_json::Value> =
        results.map(|(agent, value)| (agent.to_string(), loaded(value, blobs))).collect();
    results.into()
}

/// Returns the results of steps by key, and the latest result of each step by its id.
pub(crate) fn steps(flow: &StepsState, blobs: &Blobs) -> Map<String, serde_json::Value> {
    let mut results = Map::new();
    for (key, stored) in &flow.results {
        let text = raymond_engine::observe::load(blobs, &stored.value).unwrap_or_default();
        let result: serde_json::Value =
            reading::read_as(Holds::Record, text.as_bytes()).unwrap_or_default();
        if flow.latest.get(&key.step) == Some(key) {
            results.insert(key.step.to_string(), result.clone());
        }
        results.insert(key.to_string(), result);
    }
    results
}

fn loaded(value: &Value, blobs: &Blobs) -> serde_json::Value {
    raymond_engine::observe::load(blobs, value).map_or(serde_json::Value::Null, Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: S30
    #[test]
    fn control_characters_are_escaped_without_changing_the_value() {
        let check = |shown: &str, expected: &str| {
            let value = json!({ shown: [shown] });
            let line = text(&value, Layout::OneLine);
            assert_eq!(line, format!(r#"{{"{expected}":["{expected}"]}}"#));
            let indented = text(&value, Layout::Indented);
            assert!(!indented.contains(is_terminal_control), "{indented}");
            for printed in [line, indented] {
                assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), value);
            }
        };
        check("plain ä", "plain ä");
        check("\u{1b}\n\t", r"\u001b\n\t");
        check("\u{7f}\u{80}\u{9b}\u{9f}\u{a0}", "\\u007f\\u0080\\u009b\\u009f\u{a0}");
        check("\u{202a}\u{202e}\u{202f}", "\\u202a\\u202e\u{202f}");
        check("\u{2066}\u{2069}\u{206a}", "\\u2066\\u2069\u{206a}");
    }
}
