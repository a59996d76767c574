//! `raymond status`: where a run is, and what leads out of it.

use raymond_core::machine::{Agent, Standing};
use raymond_core::view::{way_out, why};
use raymond_engine::look::{Look as Seen, look, strays};

use crate::args::Look;
use crate::failure::Failure;
use crate::{json, runs};

use super::{print_json, print_out};

/// More agents are only counted.
const MOST_AGENTS: usize = 30;

pub(crate) fn status(flags: &Look) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = look(&project, &run)?;
    if flags.json {
        print_json(&json::run(&seen.head.run, &seen.head.ledger, seen.status))?;
    } else {
        print_out(&text(&seen))?;
    }
    Ok(0)
}

fn text(seen: &Seen) -> String {
    let run = &seen.head.run;
    let mut lines = vec![
        format!("{}  {}", run.id, seen.status),
        format!("  {}", why(run, seen.status)),
        format!("  → {}", way_out(seen.status).line(&run.id, &run.workflow)),
    ];
    let cap = run.settings.budget.map_or("no cap".to_owned(), |cap| format!("of {cap}"));
    let turns = seen.head.ledger.settled.turns;
    lines.push(format!("  spent {} {cap} · {turns} turns · {} visits", run.spent, run.visits));
    if let Some(owner) = &seen.owner {
        lines.push(format!("  driven by process {} on {}", owner.process.pid, owner.process.host));
    }
    if let raymond_store::journal::Tail::Damaged(damaged) = &seen.tail {
        lines.push(format!("  {damaged}"));
    }
    for stray in strays(seen) {
        lines.push(format!("  left running: {}", stray.command));
    }
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
        Standing::Held(_) => "  waits until workers end".to_owned(),
        Standing::Failed { failure, .. } => format!("  failed: {failure}"),
    };
    let visit = agent.visits.get(&agent.visit.state).copied().unwrap_or(1);
    let depth = match agent.stack.len() {
        0 => String::new(),
        n => format!("  depth {n}"),
    };
    format!("{:<16} {} #{visit}{depth}{standing}", agent.id, agent.visit.state)
}
