//! `raymond list`: all runs of this project, the last one first.

use std::fmt::Write as _;

use raymond_core::ids::RunId;
use raymond_engine::statefile::time;

use crate::args::List;
use crate::failure::Failure;
use crate::place::Place;
use crate::{json, runs};

use super::{print_json, print_out};

pub(crate) fn list(flags: &List) -> Result<u8, Failure> {
    let project = runs::project()?;
    let looks = runs::all(&project)?;
    if flags.json {
        let runs = looks.iter().map(|look| json::run(&look.head, &Place::seen(look)));
        print_json(&serde_json::Value::Array(runs.collect()))?;
        return Ok(0);
    }
    let mut text = String::new();
    for look in &looks {
        let run = &look.head.run;
        let started = &time(look.head.ledger.started_at)[..16];
        writeln!(text, "{:<40} {:<12} {started}  {}", run.id, look.status, run.spent).ok();
    }
    print_out(&text)?;
    let readable = |run: &RunId| looks.iter().any(|look| look.header.run == *run);
    for run in project.runs()?.iter().filter(|run| !readable(run)) {
        anstream::eprintln!("{run}: cannot be read; see `raymond status {run}`");
    }
    Ok(0)
}
