//! `raymond list`: all runs of this project, the last one first.

use raymond_engine::statefile::time;

use crate::args::List;
use crate::failure::Failure;
use crate::{json, runs};

use super::{print_json, print_out};

pub(crate) fn list(flags: &List) -> Result<u8, Failure> {
    let project = runs::project()?;
    let looks = runs::all(&project)?;
    if flags.json {
        let runs = looks
            .iter()
            .map(|(look, status)| json::run(&look.head.run, &look.head.ledger, *status));
        print_json(&serde_json::Value::Array(runs.collect()))?;
        return Ok(0);
    }
    let mut text = String::new();
    for (look, status) in &looks {
        let run = &look.head.run;
        let started = &time(look.head.ledger.started_at)[..16];
        text.push_str(&format!("{:<40} {status:<12} {started}  {}\n", run.id, run.spent));
    }
    print_out(&text)?;
    for run in project.runs()?.iter().filter(|run| !known(&looks, run)) {
        anstream::eprintln!("{run}: cannot be read; see `raymond status {run}`");
    }
    Ok(0)
}

fn known(
    looks: &[(raymond_engine::look::Look, raymond_core::view::Status)],
    run: &raymond_core::ids::RunId,
) -> bool {
    looks.iter().any(|(look, _)| look.header.run == *run)
}
