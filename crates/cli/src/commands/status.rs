//! `raymond status`: where a run is, and what leads out of it.

use raymond_core::machine::{Agent, Standing};
use raymond_core::view::counted;
use raymond_engine::look::Look as Seen;

use crate::args::Look;
use crate::failure::Failure;
use crate::place::Place;
use crate::words::plain;
use crate::{json, runs};

use super::{print_json, print_out, report};

/// More agents are only counted.
const MOST_AGENTS: usize = 30;

pub(crate) fn status(flags: &Look) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    let place = Place::seen(&project, &seen).with_processes(&seen);
    if flags.json {
        print_json(json::run(&seen.head, &place))?;
    } else {
        print_out(&text(&seen, &place))?;
    }
    Ok(0)
}

fn text(seen: &Seen, place: &Place) -> String {
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
    lines.push(String::new());
    lines.join("\n")
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
