//! The values that `--json` prints.
//!
//! Their shape has a version, and scripts depend on it: add fields, but do not rename or remove
//! any.

use std::fmt::Write as _;

use raymond_core::agent::Frame;
use raymond_core::budget::Micros;
use raymond_core::crayfish::reading::{self, Holds};
use raymond_core::crayfish::state::StepsState;
use raymond_core::crayfish::stored::written;
use raymond_core::ids::{AgentId, BackendName, RunId};
use raymond_core::protocol::Question;
use raymond_core::run::Ralph;
use raymond_core::value::Value;
use raymond_core::view::attempt::Attempt;
use raymond_core::view::denied::{Denied, DeniedGroup};
use raymond_core::view::plan::TurnInFlight;
use raymond_core::view::run_view::{
    AgentActivity, AgentCounts, AgentRow, RowStatus, Wait, WorkerCounts,
};
use raymond_core::view::summary::PendingCall;
use raymond_core::view::view_event::ProgramKind;
use raymond_core::view::words::preview;
use raymond_core::view::{Fate, Plan, RunView, Status, Totals};
use raymond_engine::driver::Head;
use raymond_store::Blobs;
use serde_json::{Map, json};

use crate::sanitize::is_terminal_control;
use crate::status_summary::StatusSummary;

/// The version of these shapes; docs/json.md explains when it changes.
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
pub(crate) fn run(view: &RunView, place: &StatusSummary) -> serde_json::Value {
    let RunView { totals, settings, .. } = view;
    let mut object = json!({
        "version": VERSION,
        "run_id": view.run,
        "workflow": view.workflow,
        "status": place.status.as_str(),
        "why": place.why,
        "next_command": place.next_command,
        "left_running": place.left_running,
        "spent_usd": view.spent.dollars(),
        "budget_usd": view.cap().map(Micros::dollars),
        "started_at": totals.started_at.to_string(),
        "updated_at": totals.updated_at.to_string(),
        "visits": view.visits,
        "turns": totals.turns(),
        "paid_turns": totals.paid.turns,
        "backends": backends(totals),
        "estimated_usd": totals.estimated.dollars(),
        "unpriced_attempts": view.unpriced,
        "rehearsed_usd": totals.rehearsed.dollars(),
        "reserved_usd": view.reserved().dollars(),
        "owner": place.owner.as_ref().map(|owner| json!({ "host": owner.host, "pid": owner.pid })),
        "tally": tally(view),
        "denied": denied(view),
        "agents": view.by_age().into_iter().map(|(id, row)| agent(view, id, row)).collect::<Vec<_>>(),
        "ended": view.ended,
        "questions": questions(view, place.status),
    });
    if let ProgramKind::Ralph(Ralph { until }) = &view.program {
        object["ralph"] = json!({
            "max_iterations": settings.max_iterations,
            "until": until,
            "exhausted": totals.exhausted.is_some(),
        });
    }
    object
}

/// Returns the open questions, the oldest first.
pub(crate) fn questions(view: &RunView, status: Status) -> serde_json::Value {
    // A run that was cancelled asks nothing any more.
    if !status.is_unfinished() {
        return json!([]);
    }
    let open = view.agents().filter_map(|(id, row)| Some((id, row, row.question.as_ref()?)));
    let mut open: Vec<_> = open.collect();
    open.sort_by_key(|(_, _, question)| question.at);
    let questions = open.into_iter().map(|(id, row, open)| {
        let Question { text, options, .. } = &open.question;
        json!({
            "agent": id,
            "state": row.place_name(),
            "question": match text {
                Value::Inline(text) => text.clone(),
                Value::Blob(_) => preview(text),
            },
            "options": options,
            "asked_at": open.at.to_string(),
            "due": open.due().map(|due| due.to_string()),
            "then": open.question.then(),
        })
    });
    questions.collect()
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
    let turn = |open: &TurnInFlight| {
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
        "waiting": plan.waiting,
        "turns": plan.open.iter().map(turn).collect::<Vec<_>>(),
        "states": states,
        "backends": plan.backends().into_iter().map(backend).collect::<Vec<_>>(),
    })
}

/// Returns the turns and costs of each backend.
fn backends(totals: &Totals) -> serde_json::Value {
    let backends = totals.backends.iter().map(|(backend, spent)| {
        json!({ "backend": backend, "turns": spent.turns, "spent_usd": spent.amount.dollars() })
    });
    backends.collect()
}

/// Returns the denied tools, each with the rule that would allow it.
pub(crate) fn denied(view: &RunView) -> serde_json::Value {
    let allowed = &view.settings.permissions.allow;
    let groups =
        Denied::of(&view.totals.denied, allowed).map(|denied| denied.groups).unwrap_or_default();
    let group = |group: DeniedGroup| json!({ "tool": group.name, "calls": group.calls, "allow": group.allow });
    groups.into_iter().map(group).collect()
}

/// Returns the numbers of agents and of workers.
fn tally(view: &RunView) -> serde_json::Value {
    let AgentCounts { running, queued, waiting, interrupted, stopped } = view.tally();
    let WorkerCounts { done, failed, cancelled, total } = view.workers();
    json!({
        "running": running, "queued": queued, "waiting": waiting, "interrupted": interrupted,
        "stopped": stopped,
        "workers": { "done": done, "failed": failed, "cancelled": cancelled, "total": total },
    })
}

fn agent(view: &RunView, id: &AgentId, row: &AgentRow) -> serde_json::Value {
    let status = match row.status() {
        RowStatus::Live => "live",
        RowStatus::Held => "waiting: agents",
        RowStatus::Parked => "waiting: time",
        RowStatus::Joining => "waiting: workers",
        RowStatus::Asking => "waiting: answer",
        RowStatus::Cancelling => "cancelling",
        RowStatus::Failed => "failed",
    };
    json!({
        "id": id,
        "parent": row.summary.parent,
        "state": row.place_name(),
        "visit": row.summary.count,
        "depth": row.frames().len(),
        "stack": row.frames().map(|(state, call)| frame(state, call)).collect::<Vec<_>>(),
        "backend": row.answering(),
        "cwd": row.cwd,
        "status": status,
        "failure": row.failure.as_ref().map(ToString::to_string),
        "doing": match view.activity(row) {
            AgentActivity::Working(_) => Some("working"),
            AgentActivity::Waiting(_) => Some("waiting"),
            AgentActivity::Queued => Some("queued"),
            AgentActivity::Interrupted => Some("interrupted"),
            AgentActivity::Stopped => Some("stopped"),
            AgentActivity::Nothing => None,
        },
        "since": row.summary.since.to_string(),
        "waits_until": match &row.activity {
            AgentActivity::Waiting(Wait::Time { until, .. } | Wait::Join { until: Some(until), .. }) => {
                Some(until.to_string())
            }
            _ => None,
        },
        "waits_for": row.group.as_ref().map(|group| group.left),
        "attributes": attributes(row),
        "spent_usd": row.summary.spent.dollars(),
        "turn": row.attempt.as_ref().map(turn),
    })
}

fn attributes(row: &AgentRow) -> serde_json::Value {
    let attribute = |(name, value): (&String, &Value)| {
        let text = match value {
            Value::Inline(text) => text.clone(),
            // A text of more than 16 KiB does not name a part of the work.
            Value::Blob(_) => preview(value),
        };
        (name.clone(), text.into())
    };
    serde_json::Value::Object(row.attributes.iter().map(attribute).collect())
}

/// Returns the turn in flight.
fn turn(attempt: &Attempt) -> serde_json::Value {
    json!({
        "turn": attempt.turn,
        "attempt": attempt.number,
        "started_at": attempt.started.to_string(),
        "share_usd": attempt.share.map(Micros::dollars),
    })
}

fn frame(frame: &Frame, call: Option<&PendingCall>) -> serde_json::Value {
    json!({
        "state": frame.state,
        "by": call.and_then(|call| call.by.as_ref()).map(ToString::to_string),
        "visit": call.map(|call| call.visit),
        "tag": call.map(|call| call.tag.as_str()),
        "at": call.map(|call| call.at.to_string()),
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
