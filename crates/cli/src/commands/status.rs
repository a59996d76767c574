//! `raymond status`: shows the status of a run and the next command.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use raymond_core::agent::Location;
use raymond_core::budget::Micros;
use raymond_core::crayfish::StepId;
use raymond_core::ids::{AgentId, StateName};
use raymond_core::text::counted;
use raymond_core::time::Timestamp;
use raymond_core::view::run_view::{
    AgentActivity, AgentCounts, AgentRow, RowStatus, Wait, WorkerCounts,
};
use raymond_core::view::view_event::ProgramKind;
use raymond_core::view::{RunView, Totals};
use raymond_core::workflow::State;
use raymond_engine::clock;
use raymond_engine::driver::Head;
use raymond_engine::inspect::Inspection as Seen;
use raymond_engine::observe;
use raymond_engine::pin::Pin;
use raymond_store::Blobs;
use raymond_store::host::ProcessIdentity;
use raymond_store::journal::Tail;

use crate::args::RunArgument;
use crate::failure::Failure;
use crate::local_time::{self, between, in_seconds};
use crate::sanitize::{sanitized, truncate_end};
use crate::status_summary::StatusSummary;
use crate::{activity, runs};

use super::{print_text, report, result};

/// Most agents that are listed.
const MOST_AGENTS: usize = 30;
/// Most results that are listed, each in at most `MOST_COLUMNS` columns.
const MOST_RESULTS: usize = 5;
const MOST_COLUMNS: usize = 80;

pub(crate) fn status(flags: &RunArgument) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    let summary =
        StatusSummary::seen(&project, &seen).with_retries(&project, &seen).with_processes(&seen);
    let blobs = project.blobs(&project.paths(&run));
    if flags.json {
        result::print_run(&seen.head, &summary, &blobs)?;
    } else {
        print_text(&text(&seen, &summary, &blobs))?;
    }
    Ok(0)
}

fn text(seen: &Seen, summary: &StatusSummary, blobs: &Blobs) -> String {
    let view = summary.view(&seen.head);
    let is_damaged = matches!(seen.journal.tail, Tail::Damaged(_));
    let mut lines = vec![
        format!("{}  {}", view.run, summary.status),
        format!("  {}", summary.why),
        format!("  → {}", summary.advice()),
    ];
    lines.extend(summary.alternative().map(|words| format!("  {words}")));
    lines.push(format!("  {}", counts(&view, is_damaged).join(" · ")));
    lines.extend(tally(&view).map(|tally| format!("  {tally}")));
    lines.extend(backends(&view).map(|backends| format!("  {backends}")));
    if let Some(owner) = &seen.owner {
        let since = local_time::date_time(Timestamp(owner.since));
        let ProcessIdentity { pid, host, .. } = &owner.process;
        lines.push(format!("  owner: process {pid} on {host} since {since}"));
    }
    lines.extend(summary.left_running.iter().map(|command| format!("  left running: {command}")));
    lines.extend(
        agents(&view, &descriptions(seen, blobs)).into_iter().map(|line| format!("  {line}")),
    );
    lines.extend(returned(&seen.head, blobs).into_iter().map(|line| format!("  {line}")));
    lines.push(String::new());
    lines.join("\n")
}

/// Returns `spent $0.50 of $10.00`, `6 turns, 4 paid` and `5 visits`. The costs in damaged records
/// are unknown.
fn counts(view: &RunView, is_damaged: bool) -> Vec<String> {
    let cap = view.cap().map_or_else(|| "no cap".to_owned(), |cap| format!("of {cap}"));
    let least = if is_damaged { "at least " } else { "" };
    let spends = !view.program.is_answered_by_caller();
    let mut counts: Vec<String> = spends
        .then(|| format!("spent {least}{} {cap}{}", view.spent, rehearsal(view)))
        .into_iter()
        .collect();
    let reserved = view.reserved();
    counts.extend((reserved > Micros::ZERO).then(|| format!("{reserved} reserved")));
    counts.extend([turns(&view.totals), counted(view.visits, "visit")]);
    counts.extend(report::uncertain(view));
    counts
}

/// Returns a note about the costs of a rehearsal.
fn rehearsal(view: &RunView) -> String {
    let rehearsed = view.totals.rehearsed;
    match rehearsed {
        Micros::ZERO => String::new(),
        _ if rehearsed == view.spent => " (rehearsal)".to_owned(),
        _ => format!(" ({rehearsed} of it rehearsed)"),
    }
}

/// Formats `2 running · 1 queued · 3 of 12 workers done, 1 failed, 1 cancelled`.
fn tally(view: &RunView) -> Option<String> {
    let AgentCounts { running, queued, waiting, interrupted, stopped } = view.tally();
    let number = |count: usize, word: &str| (count > 0).then(|| format!("{count} {word}"));
    let WorkerCounts { done, failed, cancelled, total } = view.workers();
    let others = |count: u64, word: &str| match count {
        0 => String::new(),
        _ => format!(", {count} {word}"),
    };
    let (failures, cancelled) = (others(failed, "failed"), others(cancelled, "cancelled"));
    let workers =
        (total > 0).then(|| format!("{done} of {total} workers done{failures}{cancelled}"));
    let parts = [
        number(running, "running"),
        number(interrupted, "interrupted"),
        number(stopped, "stopped"),
        number(queued, "queued"),
        number(waiting, "waiting"),
        workers,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Formats `6 turns, 4 paid`; `cost` counts the paid ones.
fn turns(totals: &Totals) -> String {
    let (all, paid) = (totals.turns(), totals.paid.turns);
    let turns = counted(all, "turn");
    if paid == 0 || paid == all { turns } else { format!("{turns}, {paid} paid") }
}

/// Formats `claude: 4 turns, $0.30 · codex: 2 turns, $0.12`, if there are several backends.
fn backends(view: &RunView) -> Option<String> {
    let texts = view.totals.backends.iter().filter_map(|(backend, spent)| {
        let backend = view.naming().label(Some(backend))?;
        Some(format!("{backend}: {}, {}", counted(spent.turns, "turn"), spent.amount))
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(" · "))
}

/// Returns a line for each live or failed agent, up to a limit.
fn agents(view: &RunView, descriptions: &Descriptions) -> Vec<String> {
    let agents = view.by_age();
    let mut lines: Vec<String> = agents
        .iter()
        .take(MOST_AGENTS)
        .map(|(id, row)| line(view, id, row, descriptions))
        .collect();
    if agents.len() > MOST_AGENTS {
        lines.push(format!("… and {} more", agents.len() - MOST_AGENTS));
    }
    lines
}

/// Returns the start of a few results, `main` first.
fn returned(head: &Head, blobs: &Blobs) -> Vec<String> {
    // Outputs of steps are data: `wait` and `--json` print them.
    if head.ledger.exhausted.is_some() || head.run.program.steps().is_some() {
        return Vec::new();
    }
    let mut lines: Vec<String> = Vec::new();
    for (agent, value) in head.run.results().take(MOST_RESULTS) {
        let text = observe::load(blobs, value).unwrap_or_else(|_| "(unreadable)".to_owned());
        let text = sanitized(&text);
        let mut rest = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = truncate_end(rest.next().unwrap_or("(empty)"), MOST_COLUMNS).into_owned();
        let more = if rest.next().is_some() { " …" } else { "" };
        let verb = if head.run.failed.contains(agent) { "gave up:" } else { "returned" };
        lines.push(format!("{agent:<16} {verb} {first}{more}"));
    }
    let more = head.run.ended.len().saturating_sub(MOST_RESULTS);
    if more > 0 {
        lines.push(format!("… and {} more; raymond show {} --json lists them", more, head.run.id));
    }
    lines
}

/// The `description` of each state and step.
#[derive(Default)]
struct Descriptions {
    states: BTreeMap<StateName, String>,
    steps: BTreeMap<StepId, String>,
}

impl Descriptions {
    fn of(&self, location: &Location) -> Option<&String> {
        match location {
            Location::State(state) => self.states.get(state),
            Location::Step(key) => self.steps.get(&key.step),
        }
    }
}

/// Returns the descriptions of the pinned definition. They only help, so an unreadable definition
/// has none.
fn descriptions(seen: &Seen, blobs: &Blobs) -> Descriptions {
    let pinned = Pin::load(&seen.head.run.manifest, blobs);
    let Ok(definition) = pinned.and_then(|pinned| pinned.definition()) else {
        return Descriptions::default();
    };
    let steps = definition.steps.iter().flat_map(|steps| steps.document.steps());
    let steps = steps.filter_map(|step| Some((step.id.clone(), step.description.clone()?)));
    let steps = steps.collect();
    let described =
        |(name, state): (StateName, State)| Some((name, state.front.description.clone()?));
    Descriptions { states: definition.states.into_iter().filter_map(described).collect(), steps }
}

fn line(view: &RunView, id: &AgentId, row: &AgentRow, descriptions: &Descriptions) -> String {
    let status = match (row.status(), &row.failure) {
        (_, Some(failure)) => format!("  failed: {}", sanitized(&failure.to_string())),
        (RowStatus::Held, None) => "  waiting: agents".to_owned(),
        (RowStatus::Cancelling, None) => "  is being cancelled".to_owned(),
        (
            RowStatus::Live
            | RowStatus::Parked
            | RowStatus::Joining
            | RowStatus::Asking
            | RowStatus::Failed,
            None,
        ) => String::new(),
    };
    // A step is visited once, and its key contains the iteration, so the visit is omitted.
    let visit = match view.program {
        ProgramKind::Steps(_) => String::new(),
        ProgramKind::States | ProgramKind::Ralph(_) => format!(" #{}", row.summary.count),
    };
    let depth = match row.frames().len() {
        0 => String::new(),
        n => format!("  depth {n}"),
    };
    let backend = view.naming().label(row.answering());
    let backend = backend.map(|backend| format!("  {backend}")).unwrap_or_default();
    let item = row.item().map(|item| format!("  {}", sanitized(&item))).unwrap_or_default();
    let activity = format!("{}{status}", activity(view, row));
    let described = row.summary.location.as_ref();
    let described = described.and_then(|location| descriptions.of(location));
    let described = described.map(|text| format!("  ({})", sanitized(text))).unwrap_or_default();
    format!("{id:<16} {}{visit}{depth}{item}{backend}{activity}{described}", row.place_name())
}

/// Formats `  works for 4m 12s`. A held fork is described by its standing.
fn activity(view: &RunView, row: &AgentRow) -> String {
    let activity = view.activity(row);
    if matches!(activity, AgentActivity::Nothing | AgentActivity::Waiting(Wait::Workers)) {
        return String::new();
    }
    let now = clock::now();
    let words = activity::describe(row, &activity, now, &TimeZone::system());
    if matches!(
        activity,
        AgentActivity::Interrupted | AgentActivity::Stopped | AgentActivity::Waiting(Wait::Budget)
    ) {
        // No process works, and the time at which an owner died is unknown: there is no duration.
        return format!("  {words}");
    }
    if matches!(row.status(), RowStatus::Parked | RowStatus::Joining | RowStatus::Asking)
        || matches!(activity, AgentActivity::Waiting(Wait::Retry(_) | Wait::Quota(..)))
    {
        // The end of the wait says more than how long it has lasted.
        return format!("  {}", sanitized(&words));
    }
    format!("  {} for {}", sanitized(&words), in_seconds(between(row.summary.since, now)))
}
