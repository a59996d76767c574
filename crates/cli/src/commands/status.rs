//! `raymond status`: where a run is, and what leads out of it.

use raymond_core::machine::{Agent, Standing};
use raymond_core::view::counted;
use raymond_engine::driver::Head;
use raymond_engine::look::Look as Seen;
use raymond_engine::observe;
use raymond_store::Blobs;

use crate::args::Look;
use crate::failure::Failure;
use crate::place::Place;
use crate::runs;
use crate::words::{cut, plain};

use super::{print_out, report, result};

/// More agents are only counted.
const MOST_AGENTS: usize = 30;
/// The same of results, of which a line is not longer than this.
const MOST_RESULTS: usize = 5;
const MOST_COLUMNS: usize = 80;

pub(crate) fn status(flags: &Look) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    let place = Place::seen(&project, &seen).with_processes(&seen);
    let blobs = project.blobs(&project.paths(&run));
    if flags.json {
        result::print_run(&seen.head, &place, &blobs)?;
    } else {
        print_out(&text(&seen, &place, &blobs))?;
    }
    Ok(0)
}

fn text(seen: &Seen, place: &Place, blobs: &Blobs) -> String {
    let run = &seen.head.run;
    let mut lines = vec![
        format!("{}  {}", run.id, place.status),
        format!("  {}", place.why),
        format!("  → {}", place.way_out),
    ];
    let cap = run.settings.budget.map_or_else(|| "no cap".to_owned(), |cap| format!("of {cap}"));
    let turns = counted(seen.head.ledger.settled.turns, "turn");
    let mut money = vec![format!("spent {} {cap}", run.spent), turns, counted(run.visits, "visit")];
    money.extend(report::uncertain(&seen.head));
    lines.push(format!("  {}", money.join(" · ")));
    if let Some(owner) = &seen.owner {
        lines.push(format!("  driven by process {} on {}", owner.process.pid, owner.process.host));
    }
    lines.extend(place.left_running.iter().map(|command| format!("  left running: {command}")));
    let mut agents: Vec<&Agent> = run.agents.values().collect();
    agents.sort_by_key(|agent| agent.born);
    for agent in agents.iter().take(MOST_AGENTS) {
        lines.push(format!("  {}", line(agent)));
    }
    if agents.len() > MOST_AGENTS {
        lines.push(format!("  … and {} more", agents.len() - MOST_AGENTS));
    }
    lines.extend(returned(&seen.head, blobs).into_iter().map(|line| format!("  {line}")));
    lines.push(String::new());
    lines.join("\n")
}

/// The beginning of what agents returned: of `main` first, and only of a few.
fn returned(head: &Head, blobs: &Blobs) -> Vec<String> {
    if head.ledger.exhausted.is_some() {
        return Vec::new();
    }
    let results = &head.ledger.results;
    let mut lines: Vec<String> = Vec::new();
    for (agent, value) in results.iter().take(MOST_RESULTS) {
        let text = observe::load(blobs, value).unwrap_or_else(|_| "(it cannot be read)".to_owned());
        let text = plain(&text);
        let mut rest = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = cut(rest.next().unwrap_or("(empty)"), MOST_COLUMNS).into_owned();
        let more = if rest.next().is_some() { " …" } else { "" };
        lines.push(format!("{agent:<16} returned {first}{more}"));
    }
    if results.len() > MOST_RESULTS {
        let more = results.len() - MOST_RESULTS;
        lines.push(format!("… and {} more; raymond show {} --json has them", more, head.run.id));
    }
    lines
}

fn line(agent: &Agent) -> String {
    let standing = match &agent.standing {
        Standing::Live => String::new(),
        Standing::Held(_) => "  waiting: agents".to_owned(),
        Standing::Failed { failure, .. } => format!("  failed: {}", plain(&failure.to_string())),
    };
    let visit = agent.visits.get(&agent.visit.state).copied().unwrap_or(1);
    let depth = match agent.stack.len() {
        0 => String::new(),
        n => format!("  depth {n}"),
    };
    format!("{:<16} {} #{visit}{depth}{standing}", agent.id, agent.visit.state)
}
