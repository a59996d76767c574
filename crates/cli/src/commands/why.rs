//! `raymond why`: explains the status of a run in one sentence, and prints the next command.

use serde_json::json;

use crate::args::RunArgument;
use crate::failure::Failure;
use crate::status_summary::StatusSummary;
use crate::{json as shapes, runs};

use super::{print_json, print_text};

pub(crate) fn why(flags: &RunArgument) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    let summary =
        StatusSummary::seen(&project, &seen).with_retries(&project, &seen).with_processes(&seen);
    let (advice, alternative) = (summary.advice(), summary.alternative());
    let StatusSummary { status, why, next_command, left_running, .. } = summary;
    if flags.json {
        print_json(json!({
            "version": shapes::VERSION, "run_id": run, "status": status.as_str(), "why": why, "next_command": next_command,
            "left_running": left_running, "denied": shapes::denied(&seen.head.view()),
        }))?;
    } else {
        let left = left_running.iter().map(|command| format!("left running: {command}\n"));
        let left = left.collect::<String>();
        let alternative = alternative.map(|words| words + "\n").unwrap_or_default();
        print_text(&format!("{status}: {why}\n{left}→ {advice}\n{alternative}"))?;
    }
    Ok(0)
}
