//! `raymond list`: lists the runs of this project or of all projects, the latest first.

use std::cmp::Reverse;
use std::io::IsTerminal as _;
use std::path::Path;

use raymond_core::ids::RunId;
use raymond_core::time::{Span, Timestamp};
use raymond_core::view::{RunView, Status};
use raymond_engine::clock;
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;
use serde_json::json;

use crate::args::ListFlags;
use crate::failure::{Failure, no_runs_in};
use crate::known_projects::{self, KnownProjects};
use crate::local_time::{age, between, date_time};
use crate::path_text::below_home;
use crate::runs::AllRuns;
use crate::sanitize::{aligned, sanitized, truncate_end};
use crate::status_summary::StatusSummary;
use crate::{json as shapes, runs, terminal};

use super::{print_json, print_text};

pub(crate) fn list(flags: &ListFlags) -> Result<u8, Failure> {
    let now = clock::now();
    let mut listing =
        if flags.all { of_all_projects(flags, now)? } else { of_project(flags, now)? };
    // By recorded time and not by file time, which a copy or a resume changes.
    listing.rows.sort_by_key(|row| Reverse(row.view.totals.started_at));
    if flags.json {
        print_json(listing.rows.iter().map(ListedRun::json).collect())?;
    } else {
        print_text(&table(&listing.rows, &Column::shown(flags), now))?;
    }
    if let Some(none) = listing.none {
        crate::say!("{none}; raymond run WORKFLOW starts one");
    } else if listing.rows.is_empty() && listing.is_any_readable {
        crate::say!("no run matches");
    }
    // On stderr, because stdout contains only data: with `--json` it must stay one array.
    for problem in &listing.problems {
        crate::say!("{problem}");
    }
    Ok(0)
}

/// The runs to list.
#[derive(Default)]
struct Listing {
    rows: Vec<ListedRun>,
    /// That there is no run at all, even an unreadable one.
    none: Option<String>,
    /// Whether any run was read, even if the filters reject it.
    is_any_readable: bool,
    /// Runs and projects that cannot be read.
    problems: Vec<String>,
}

fn of_project(flags: &ListFlags, now: Timestamp) -> Result<Listing, Failure> {
    let project = runs::project()?;
    let mut listing = Listing::default();
    let all = runs::read_all(&project)?;
    listing.none = all.is_empty().then(|| no_runs_in(project.root.project()));
    let AllRuns { looks, never_started, unreadable } = all;
    listing.add(&project, &looks, flags, now);
    listing.problems.extend(unlisted(&unreadable, &never_started));
    Ok(listing)
}

/// Reads one project after the other, because the journals of all may not fit into memory.
fn of_all_projects(flags: &ListFlags, now: Timestamp) -> Result<Listing, Failure> {
    let KnownProjects { projects, problems } = known_projects::registered_and_current()?;
    let mut listing = Listing { problems, ..Listing::default() };
    let mut is_empty = true;
    for project in &projects {
        let place = below_home(project.root.project());
        let all = match runs::read_all(project) {
            Ok(all) => all,
            // The other projects can still be listed.
            Err(failure) => {
                listing.problems.push(format!("{place}: {}", failure.message_and_hint().0));
                continue;
            }
        };
        is_empty &= all.is_empty();
        let AllRuns { looks, never_started, unreadable } = all;
        listing.add(project, &looks, flags, now);
        let problems = unlisted(&unreadable, &never_started);
        listing.problems.extend(problems.map(|problem| format!("{place}: {problem}")));
    }
    listing.none = is_empty.then(|| "the projects of this user have no runs".to_owned());
    Ok(listing)
}

/// Names the runs that have no row.
fn unlisted(unreadable: &[RunId], never_started: &[RunId]) -> impl Iterator<Item = String> {
    let unreadable =
        unreadable.iter().map(|run| format!("{run}: unreadable; see `raymond status {run}`"));
    unreadable.chain(never_started.iter().map(|run| format!("{run}: never started")))
}

impl Listing {
    /// Adds the runs of a project that match the filters.
    fn add(&mut self, project: &Project, looks: &[Inspection], flags: &ListFlags, now: Timestamp) {
        self.is_any_readable |= !looks.is_empty();
        let is_wanted = |look: &&Inspection| {
            flags.status.is_empty()
                || flags.status.iter().any(|status| status == look.status.as_str())
        };
        let rows = looks.iter().filter(is_wanted).map(|look| ListedRun::of(project, look));
        self.rows.extend(rows.filter(|row| row.matches(flags, now)));
    }
}

/// A row of the list.
struct ListedRun {
    view: RunView,
    summary: StatusSummary,
    /// The directory of its project.
    project: String,
    /// The workflow, relative to the project if it is inside.
    workflow: String,
}

impl ListedRun {
    fn of(project: &Project, look: &Inspection) -> Self {
        let summary = summary(project, look);
        let view = summary.view(&look.head);
        let directory = project.root.project();
        let workflow = runs::relative_workflow(&view.workflow, directory);
        Self { summary, project: directory.display().to_string(), workflow, view }
    }

    fn matches(&self, flags: &ListFlags, now: Timestamp) -> bool {
        let is_young = |span: &Span| between(self.view.totals.started_at, now).0 <= span.0;
        let is_wanted = |wanted: &String| is_of(&self.workflow, wanted);
        flags.since.as_ref().is_none_or(is_young) && flags.workflow.as_ref().is_none_or(is_wanted)
    }

    fn json(&self) -> serde_json::Value {
        let mut object = shapes::run(&self.view, &self.summary);
        object["project"] = json!(self.project);
        object
    }

    fn cell(&self, column: Column, now: Timestamp) -> String {
        let started = self.view.totals.started_at;
        match column {
            Column::Run => self.view.run.to_string(),
            Column::Status => self.summary.status.to_string(),
            Column::Started => date_time(started),
            Column::Age => age(between(started, now)),
            Column::Cost => cost(&self.view),
            Column::Project => sanitized(&below_home(self.project.as_ref())),
            Column::Workflow => sanitized(&self.workflow),
            Column::Reason => self.reason(),
        }
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
        let unpriced = if view.unpriced > 0 { " + unpriced" } else { "" };
        format!("{}{unpriced}", view.spent.minus(rehearsed))
    }
}

/// Returns the status of a run. Searching for processes is slow, so it happens only for a run that
/// may have some.
fn summary(project: &Project, look: &Inspection) -> StatusSummary {
    let summary = StatusSummary::seen(project, look);
    if look.status == Status::Interrupted { summary.with_processes(look) } else { summary }
}

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Run,
    Status,
    Started,
    Age,
    Cost,
    Project,
    Workflow,
    Reason,
}

impl Column {
    const fn title(self) -> &'static str {
        match self {
            Self::Run => "RUN",
            Self::Status => "STATUS",
            Self::Started => "STARTED",
            Self::Age => "AGE",
            Self::Cost => "COST",
            Self::Project => "PROJECT",
            Self::Workflow => "WORKFLOW",
            Self::Reason => "REASON",
        }
    }

    /// Returns the columns to show, from left to right.
    fn shown(flags: &ListFlags) -> Vec<Self> {
        /// Columns of a terminal that has room for every column and most reasons.
        const WIDE: usize = 120;
        let is_narrow = std::io::stdout().is_terminal() && terminal::width() < WIDE;
        let mut columns = vec![Self::Run, Self::Status];
        // The age says nearly the same, and the reason needs the room.
        columns.extend((!is_narrow).then_some(Self::Started));
        columns.extend([Self::Age, Self::Cost]);
        columns.extend(flags.all.then_some(Self::Project));
        columns.extend([Self::Workflow, Self::Reason]);
        columns
    }
}

/// ```text
/// RUN           STATUS     STARTED               AGE   COST   WORKFLOW      REASON
/// review-k3f9   completed  2026-11-19 10:05 CET  3m    $0.40  flows/review  main ended with …
/// ```
fn table(rows: &[ListedRun], columns: &[Column], now: Timestamp) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let titles = columns.iter().map(|column| column.title().to_owned()).collect();
    let cells = |row: &ListedRun| columns.iter().map(|column| row.cell(*column, now)).collect();
    let rows: Vec<Vec<String>> = [titles].into_iter().chain(rows.iter().map(cells)).collect();
    // The reason may be long. Only a terminal would wrap it.
    let edge = std::io::stdout().is_terminal().then(terminal::width);
    let line = |line: String| {
        let shown = edge.map_or_else(|| line.as_str().into(), |edge| truncate_end(&line, edge));
        format!("{shown}\n")
    };
    aligned(&rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::is_of;

    #[test]
    fn end_of_a_path_finds_its_workflow() {
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
