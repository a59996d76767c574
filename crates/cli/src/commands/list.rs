//! `raymond list`: lists the runs of this project, the latest first.

use raymond_core::view::{Status, Waiting};
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;
use raymond_store::journal::Tail;

use crate::args::List;
use crate::failure::{Failure, no_runs_in};
use crate::runs::AllRuns;
use crate::status_summary::StatusSummary;
use crate::{json, runs};

use super::{print_json, print_text};

pub(crate) fn list(flags: &List) -> Result<u8, Failure> {
    let project = runs::project()?;
    let AllRuns { looks, never_started, unreadable } = runs::read_all(&project)?;
    if flags.json {
        let runs = looks.iter().map(|look| json::run(&look.head.view(), &place(&project, look)));
        print_json(serde_json::Value::Array(runs.collect()))?;
    } else {
        print_text(&looks.iter().map(|look| line(&project, look)).collect::<String>())?;
    }
    if looks.is_empty() && unreadable.is_empty() && never_started.is_empty() {
        let none = no_runs_in(project.root.project());
        crate::say!("{none}; raymond run WORKFLOW starts one");
    }
    // On stderr, because stdout contains only data: with `--json` it must stay one array.
    for run in &unreadable {
        crate::say!("{run}: unreadable; see `raymond status {run}`");
    }
    for run in &never_started {
        crate::say!("{run}: never started");
    }
    Ok(0)
}

/// Returns the status of a run. Searching for processes is slow, so it happens only for a run that
/// may have some.
fn place(project: &Project, look: &Inspection) -> StatusSummary {
    let place = StatusSummary::seen(project, look);
    if look.status == Status::Interrupted { place.with_processes(look) } else { place }
}

fn line(project: &Project, look: &Inspection) -> String {
    let run = &look.head.run;
    // 16 characters of RFC 3339 end with the minute.
    let started = &look.head.ledger.started_at.to_string()[..16];
    let left = match place(project, look).left_running.len() {
        0 => String::new(),
        left => format!("  {left} left running"),
    };
    let damaged = if matches!(look.journal.tail, Tail::Damaged(_)) { "  damaged" } else { "" };
    let until = until(look.status);
    let suspended = look.suspended_owner().map_or("", |_| "  suspended");
    let Inspection { status, .. } = look;
    format!(
        "{:<40} {status:<12} {started}  {}{damaged}{until}{suspended}{left}\n",
        run.id, run.spent
    )
}

/// Formats the time until which a run waits, if it is known.
fn until(status: Status) -> String {
    const TO_THE_SECOND: usize = 19;
    match status {
        Status::Waiting(Waiting::Quota(Some(until)) | Waiting::Retry(until), _) => {
            format!("  until {}", &until.to_string()[..TO_THE_SECOND])
        }
        Status::Waiting(
            Waiting::Quota(None) | Waiting::Person | Waiting::Caller | Waiting::Environment,
            _,
        )
        | Status::Running
        | Status::Completed
        | Status::Failed
        | Status::OverBudget
        | Status::Cancelled
        | Status::Stopped
        | Status::Interrupted => String::new(),
    }
}
