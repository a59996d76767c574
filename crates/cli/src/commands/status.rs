//! `raymond status`: shows the status of a run and the next command.

use raymond_core::ids::AgentId;
use raymond_core::text::counted;
use raymond_core::view::run_view::{AgentRow, Standing};
use raymond_core::view::view_event::ProgramKind;
use raymond_core::view::{RunView, Totals};
use raymond_engine::driver::Head;
use raymond_engine::inspect::Inspection as Seen;
use raymond_engine::observe;
use raymond_store::Blobs;

use crate::args::RunArgument;
use crate::failure::Failure;
use crate::runs;
use crate::sanitize::{sanitized, truncate_end};
use crate::status_summary::StatusSummary;

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
    let view = seen.head.view();
    let mut lines = vec![
        format!("{}  {}", view.run, summary.status),
        format!("  {}", summary.why),
        format!("  → {}", summary.next_command),
        format!("  {}", counts(&view).join(" · ")),
    ];
    lines.extend(backends(&view).map(|backends| format!("  {backends}")));
    if let Some(owner) = &seen.owner {
        lines.push(format!("  driven by process {} on {}", owner.process.pid, owner.process.host));
    }
    lines.extend(summary.left_running.iter().map(|command| format!("  left running: {command}")));
    lines.extend(agents(&view).into_iter().map(|line| format!("  {line}")));
    lines.extend(returned(&seen.head, blobs).into_iter().map(|line| format!("  {line}")));
    lines.push(String::new());
    lines.join("\n")
}

/// Returns `spent $0.50 of $10.00`, `6 turns, 4 paid` and `5 visits`.
fn counts(view: &RunView) -> Vec<String> {
    let cap = view.cap().map_or_else(|| "no cap".to_owned(), |cap| format!("of {cap}"));
    let spends = !view.program.is_answered_by_caller();
    let mut counts: Vec<String> =
        spends.then(|| format!("spent {} {cap}", view.spent)).into_iter().collect();
    counts.extend([turns(&view.totals), counted(view.visits, "visit")]);
    counts.extend(report::uncertain(view));
    counts
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
fn agents(view: &RunView) -> Vec<String> {
    let agents = view.by_age();
    let mut lines: Vec<String> =
        agents.iter().take(MOST_AGENTS).map(|(id, row)| line(view, id, row)).collect();
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
        lines.push(format!("{agent:<16} returned {first}{more}"));
    }
    let more = head.run.ended.len().saturating_sub(MOST_RESULTS);
    if more > 0 {
        lines.push(format!("… and {} more; raymond show {} --json lists them", more, head.run.id));
    }
    lines
}

fn line(view: &RunView, id: &AgentId, row: &AgentRow) -> String {
    let status = match (row.standing(), &row.failure) {
        (_, Some(failure)) => format!("  failed: {}", sanitized(&failure.to_string())),
        (Standing::Held, None) => "  waiting: agents".to_owned(),
        (Standing::Live | Standing::Failed, None) => String::new(),
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
    format!("{id:<16} {}{visit}{depth}{backend}{status}", row.place_name())
}
