//! `raymond status`: shows the status of a run and the next command.

use raymond_core::agent::{Agent, AgentStatus};
use raymond_core::ids::BackendName;
use raymond_core::run::Run;
use raymond_core::text::counted;
use raymond_core::view;
use raymond_core::view::{Ledger, answering};
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
    let run = &seen.head.run;
    let mut lines = vec![
        format!("{}  {}", run.id, summary.status),
        format!("  {}", summary.why),
        format!("  → {}", summary.next_command),
    ];
    let cap = run.settings.budget.map_or_else(|| "no cap".to_owned(), |cap| format!("of {cap}"));
    let ledger = &seen.head.ledger;
    let spent = (!view::is_of_caller(run)).then(|| format!("spent {} {cap}", run.spent));
    let mut money: Vec<String> = spent.into_iter().collect();
    money.extend([turns(ledger), counted(run.visits, "visit")]);
    money.extend(report::uncertain(&seen.head));
    lines.push(format!("  {}", money.join(" · ")));
    lines.extend(backends(ledger).map(|backends| format!("  {backends}")));
    if let Some(owner) = &seen.owner {
        lines.push(format!("  driven by process {} on {}", owner.process.pid, owner.process.host));
    }
    lines.extend(summary.left_running.iter().map(|command| format!("  left running: {command}")));
    let mut agents: Vec<&Agent> = run.agents.values().collect();
    // The map is ordered by id; readers expect the order of creation.
    agents.sort_by_key(|agent| agent.born);
    for agent in agents.iter().take(MOST_AGENTS) {
        let backend = ledger.naming().label(answering(run, agent));
        lines.push(format!("  {}", line(run, agent, backend)));
    }
    if agents.len() > MOST_AGENTS {
        lines.push(format!("  … and {} more", agents.len() - MOST_AGENTS));
    }
    lines.extend(returned(&seen.head, blobs).into_iter().map(|line| format!("  {line}")));
    lines.push(String::new());
    lines.join("\n")
}

/// Formats `6 turns, 4 paid`; `cost` counts the paid ones.
fn turns(ledger: &Ledger) -> String {
    let (all, paid) = (ledger.turns(), ledger.paid.turns);
    let turns = counted(all, "turn");
    if paid == 0 || paid == all { turns } else { format!("{turns}, {paid} paid") }
}

/// Formats `claude: 4 turns, $0.30 · codex: 2 turns, $0.12`, if there are several backends.
fn backends(ledger: &Ledger) -> Option<String> {
    let texts = ledger.backends.iter().filter_map(|(backend, spent)| {
        let backend = ledger.naming().label(Some(backend))?;
        Some(format!("{backend}: {}, {}", counted(spent.turns, "turn"), spent.amount))
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(" · "))
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

fn line(run: &Run, agent: &Agent, backend: Option<&BackendName>) -> String {
    let status = match &agent.status {
        AgentStatus::Live => String::new(),
        AgentStatus::Held(_) => "  waiting: agents".to_owned(),
        AgentStatus::Failed { failure, .. } => {
            format!("  failed: {}", sanitized(&failure.to_string()))
        }
    };
    let visit = agent.visit_count();
    // A step is visited once, and its key contains the iteration, so the visit is omitted.
    let visit = if run.program.steps().is_some() { String::new() } else { format!(" #{visit}") };
    let depth = match agent.stack.len() {
        0 => String::new(),
        n => format!("  depth {n}"),
    };
    let backend = backend.map(|backend| format!("  {backend}")).unwrap_or_default();
    format!("{:<16} {}{visit}{depth}{backend}{status}", agent.id, view::place(run, agent))
}
