//! `raymond why`: explains the status of a run in one sentence, and prints the next command.

use std::io::stdout;

use raymond_core::ids::AgentId;
use raymond_core::text::counted;
use raymond_core::view::run_view::AgentRow;
use raymond_core::view::{RunView, Status};
use serde_json::json;

use crate::args::RunArgument;
use crate::console::{LineLayout, wrapped};
use crate::failure::Failure;
use crate::sanitize::sanitized;
use crate::status_summary::StatusSummary;
use crate::{cause, json as shapes, runs, terminal};

use super::{print_json, print_text};

pub(crate) fn why(flags: &RunArgument) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    let summary =
        StatusSummary::seen(&project, &seen).with_retries(&project, &seen).with_processes(&seen);
    let (advice, alternative) = (summary.advice(), summary.alternative());
    let StatusSummary { status, why, next_command, left_running, .. } = summary;
    let view = seen.head.view();
    if flags.json {
        let failed = failed(&view).map(
            |(id, row, reason)| json!({ "id": id, "state": row.place_name(), "failure": reason }),
        );
        print_json(json!({
            "version": shapes::VERSION, "run_id": run, "status": status.as_str(), "why": why, "next_command": next_command,
            "left_running": left_running, "denied": shapes::denied(&view), "failed": failed.collect::<Vec<_>>(),
        }))?;
    } else {
        // The lines below name all failed agents, with their reasons.
        let others = sanitized(&cause::others(&seen.head.run, &seen.head.ledger, status));
        let sentence = why.replacen(&others, "", 1);
        let named = usize::from(status == Status::Failed);
        let is_listed = status != Status::Cancelled && failed(&view).count() > named;
        let failed = if is_listed { failed_lines(&view) } else { String::new() };
        let left = left_running.iter().map(|command| format!("left running: {command}\n"));
        let left = left.collect::<String>();
        let alternative = alternative.map(|words| words + "\n").unwrap_or_default();
        print_text(&format!("{status}: {sentence}\n{failed}{left}→ {advice}\n{alternative}"))?;
    }
    Ok(0)
}

/// Returns the failed agents in the order of creation, each with its reason.
fn failed(view: &RunView) -> impl Iterator<Item = (&AgentId, &AgentRow, String)> {
    let reason = |row: &AgentRow| row.failure.as_ref().map(ToString::to_string);
    view.by_age().into_iter().filter_map(move |(id, row)| Some((id, row, reason(row)?)))
}

/// Names every failed agent: one line for the agents that failed in one place for one reason.
fn failed_lines(view: &RunView) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let mut total = 0_u32;
    for (id, row, reason) in failed(view) {
        total += 1;
        let ending = sanitized(&format!("at {}: {reason}", row.place_name()));
        match groups.iter_mut().find(|(known, _)| *known == ending) {
            Some((_, agents)) => agents.push(id.as_str()),
            None => groups.push((ending, vec![id.as_str()])),
        }
    }
    let layout = LineLayout { edge: terminal::edge(&stdout()), taken: 0, indent: 4 };
    let line = |(ending, agents): &(String, Vec<&str>)| {
        wrapped(&format!("  {} {ending}", sanitized(&agents.join(", "))), layout) + "\n"
    };
    format!("{} failed:\n{}", counted(total, "agent"), groups.iter().map(line).collect::<String>())
}
