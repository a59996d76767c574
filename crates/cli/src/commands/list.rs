//! `raymond list`: lists the runs of this project, the latest first.

use std::io::IsTerminal as _;
use std::path::Path;

use raymond_core::time::{Span, Timestamp};
use raymond_core::view::{RunView, Status};
use raymond_engine::clock;
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;
use unicode_width::UnicodeWidthStr as _;

use crate::args::List;
use crate::failure::{Failure, no_runs_in};
use crate::local_time::{age, between, date_time};
use crate::runs::AllRuns;
use crate::sanitize::{pad, sanitized, truncate_end};
use crate::status_summary::StatusSummary;
use crate::{json, runs, terminal};

use super::{print_json, print_text};

pub(crate) fn list(flags: &List) -> Result<u8, Failure> {
    let project = runs::project()?;
    let AllRuns { looks, never_started, unreadable } = runs::read_all(&project)?;
    let is_empty = looks.is_empty() && unreadable.is_empty() && never_started.is_empty();
    let rows: Vec<ListedRun> = looks
        .iter()
        .filter(|look| {
            flags.status.is_empty()
                || flags.status.iter().any(|status| status == look.status.as_str())
        })
        .map(|look| ListedRun::of(&project, look))
        .filter(|row| row.matches(flags, clock::now()))
        .collect();
    if flags.json {
        print_json(rows.iter().map(|row| json::run(&row.view, &row.summary)).collect())?;
    } else {
        print_text(&table(&rows, clock::now()))?;
    }
    if is_empty {
        let none = no_runs_in(project.root.project());
        crate::say!("{none}; raymond run WORKFLOW starts one");
    } else if rows.is_empty() && !looks.is_empty() {
        crate::say!("no run matches");
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

/// A row of the list.
struct ListedRun {
    view: RunView,
    summary: StatusSummary,
    /// The workflow, relative to the project if it is inside.
    workflow: String,
}

impl ListedRun {
    fn of(project: &Project, look: &Inspection) -> Self {
        let summary = summary(project, look);
        let view = summary.view(&look.head);
        let workflow = runs::relative_workflow(&view.workflow, project.root.project());
        Self { summary, workflow, view }
    }

    fn matches(&self, flags: &List, now: Timestamp) -> bool {
        let is_young = |span: &Span| between(self.view.totals.started_at, now).0 <= span.0;
        let is_wanted = |wanted: &String| is_of(&self.workflow, wanted);
        flags.since.as_ref().is_none_or(is_young) && flags.workflow.as_ref().is_none_or(is_wanted)
    }

    /// Returns the cells in the order of [`HEADER`].
    fn cells(&self, now: Timestamp) -> [String; 7] {
        let started = self.view.totals.started_at;
        [
            self.view.run.to_string(),
            self.summary.status.to_string(),
            date_time(started),
            age(between(started, now)),
            cost(&self.view),
            sanitized(&self.workflow),
            self.reason(),
        ]
    }

    fn reason(&self) -> String {
        match self.summary.left_running.len() {
            0 => self.summary.why.clone(),
            left => format!("{}; {left} left running", self.summary.why),
        }
    }
}

/// Returns whether a workflow is the wanted one: its path, or the end of its path, with or without
/// the extension.
fn is_of(workflow: &str, wanted: &str) -> bool {
    let wanted = Path::new(wanted.trim_end_matches('/'));
    let workflow = Path::new(workflow);
    workflow.ends_with(wanted) || workflow.with_extension("").ends_with(wanted)
}

/// Returns the cost of a run. A rehearsal costs no money.
fn cost(view: &RunView) -> String {
    let rehearsed = view.totals.rehearsed;
    if rehearsed == view.spent && rehearsed.0 > 0 {
        "rehearsal".to_owned()
    } else {
        view.spent.minus(rehearsed).to_string()
    }
}

/// Returns the status of a run. Searching for processes is slow, so it happens only for a run that
/// may have some.
fn summary(project: &Project, look: &Inspection) -> StatusSummary {
    let summary = StatusSummary::seen(project, look);
    if look.status == Status::Interrupted { summary.with_processes(look) } else { summary }
}

const HEADER: [&str; 7] = ["RUN", "STATUS", "STARTED", "AGE", "COST", "WORKFLOW", "REASON"];

/// ```text
/// RUN           STATUS     STARTED               AGE   COST   WORKFLOW      REASON
/// review-k3f9   completed  2026-11-19 10:05 CET  3m    $0.40  flows/review  main ended with …
/// ```
fn table(rows: &[ListedRun], now: Timestamp) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows = rows.iter().map(|row| row.cells(now));
    let rows: Vec<[String; 7]> = [HEADER.map(str::to_owned)].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    // The reason may be long. Only a terminal would wrap it.
    let edge = std::io::stdout().is_terminal().then(terminal::width);
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| pad(cell, width));
        let line = cells.collect::<Vec<_>>().join("  ");
        let line = line.trim_end();
        let shown = edge.map_or_else(|| line.into(), |edge| truncate_end(line, edge));
        format!("{shown}\n")
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::is_of;

    #[test]
    fn workflow_is_found_by_the_end_of_its_path() {
        let check = |wanted: &str, expected: bool| {
            assert_eq!(is_of("flows/review.zip", wanted), expected, "{wanted}");
        };
        check("flows/review.zip", true);
        check("review.zip", true);
        check("review", true);
        check("flows/review/", true);
        check("view", false);
        check("flows", false);
    }
}
