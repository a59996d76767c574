//! `raymond list`: all runs of this project, the last one first.

use std::fmt::Write as _;

use raymond_core::view::Status;
use raymond_engine::look::Look;

use crate::args::List;
use crate::failure::Failure;
use crate::place::Place;
use crate::runs::Survey;
use crate::{json, runs};

use super::{print_json, print_out};

pub(crate) fn list(flags: &List) -> Result<u8, Failure> {
    let Survey { looks, never_started, unreadable } = runs::survey(&runs::project()?)?;
    if flags.json {
        let runs = looks.iter().map(|look| json::run(&look.head, &place(look)));
        print_json(serde_json::Value::Array(runs.collect()))?;
    } else {
        print_out(&looks.iter().fold(String::new(), line))?;
    }
    if looks.is_empty() && unreadable.is_empty() && never_started.is_empty() {
        crate::say!("this project has no runs; raymond run WORKFLOW starts one");
    }
    for run in &unreadable {
        crate::say!("{run}: cannot be read; see `raymond status {run}`");
    }
    for run in &never_started {
        crate::say!("{run}: never started");
    }
    Ok(0)
}

/// Processes are looked for only where some must be expected.
fn place(look: &Look) -> Place {
    let place = Place::seen(look);
    if look.status == Status::Interrupted { place.with_processes(look) } else { place }
}

fn line(mut text: String, look: &Look) -> String {
    let run = &look.head.run;
    let started = &look.head.ledger.started_at.to_string()[..16];
    write!(text, "{:<40} {:<12} {started}  {}", run.id, look.status, run.spent).ok();
    if let left @ 1.. = place(look).left_running.len() {
        write!(text, "  {left} left running").ok();
    }
    text.push('\n');
    text
}
