//! `raymond show`: prints the history of a run as the console printed it live.

use raymond_core::run::Input;
use raymond_core::run::outcome::Outcome;
use raymond_core::view::{RunView, Weight, words};
use raymond_engine::observe;
use raymond_store::Blobs;
use serde_json::json;

use crate::args::Show;
use crate::failure::Failure;
use crate::local_time::{self, DayHeadings};
use crate::sanitize::sanitized;
use crate::status_summary::StatusSummary;
use crate::{console, json as shapes, runs, terminal};

use super::{print_styled, result};

pub(crate) fn show(flags: &Show) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    let blobs = project.blobs(&project.paths(&run));
    if flags.json {
        let summary = StatusSummary::seen(&project, &seen);
        let mut object = shapes::run(&summary.view(&seen.head), &summary);
        object["records"] = json!(runs::records(&seen).collect::<Result<Vec<_>, _>>()?);
        result::print_object(object, &seen.head, &blobs)?;
        return Ok(0);
    }
    runs::report_damage(&seen);
    let least = if flags.verbose { Weight::Detail } else { Weight::Plain };
    let (mut view, naming) = (RunView::default(), seen.head.ledger.naming());
    let mut text = String::new();
    let edge = terminal::edge(&std::io::stdout());
    let mut days = DayHeadings::default();
    for record in runs::records(&seen) {
        let record = record?;
        let mut lines = String::new();
        for step in &record.steps {
            if flags.verbose {
                lines.push_str(&said(&step.cause, &blobs));
            }
            let noted = step.events.iter().filter_map(|event| view.note(record.at, event));
            let noted = noted.filter_map(|event| words(&event, naming, local_time::date_time));
            for line in noted.filter(|line| line.weight >= least) {
                lines.push_str(&console::fitted_line(record.at, &line, edge));
                lines.push('\n');
            }
        }
        if lines.is_empty() {
            continue;
        }
        text.extend(days.above(record.at).map(|day| day + "\n"));
        if flags.verbose {
            text.extend(["record ", &record.seq.to_string(), "\n"]);
        }
        text.push_str(&lines);
    }
    if let Some(result) = result::of_main(&seen.head, &blobs)?.filter(|_| flags.verbose) {
        // Log lines are short, but the final result is the purpose of the run, so it is printed
        // completely.
        text.extend(["result of main:\n", &sanitized(result.trim_end_matches('\n')), "\n"]);
    }
    // `print_styled` writes styles as they are, so they are removed for a pipe.
    let plain = anstream::adapter::strip_str(&text).to_string();
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
    print_styled(if terminal { &text } else { &plain })?;
    Ok(0)
}

/// Formats the last message of a turn below a bar; truncates a long text.
fn said(cause: &Input, blobs: &Blobs) -> String {
    // In characters: about two screens. `logs` prints the whole text.
    const LONGEST: usize = 4000;
    let Input::Settled { outcome: Outcome::Finished(finished), .. } = cause else {
        return String::new();
    };
    let Ok(text) = observe::load(blobs, &finished.reply.text) else { return String::new() };
    let cut = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
    let mut lines: Vec<String> =
        sanitized(text[..cut].trim_end()).lines().map(|line| format!("    | {line}\n")).collect();
    if cut < text.len() {
        lines.push(format!("    | … {} bytes in all\n", text.len()));
    }
    lines.concat()
}
