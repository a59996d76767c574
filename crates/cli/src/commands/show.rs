//! `raymond show`: the history of a run, told as it was told live.

use raymond_core::view::{Narrator, Weight};
use serde_json::json;

use crate::args::Show;
use crate::failure::Failure;
use crate::place::Place;
use crate::{console, json as shapes, runs};

use super::{print_json, print_out};

pub(crate) fn show(flags: &Show) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    if flags.json {
        let blobs = project.blobs(&project.paths(&run));
        let mut object = shapes::run(&seen.head, &Place::seen(&seen));
        object["results"] = shapes::results(&seen.head, &blobs);
        object["records"] = json!(seen.records);
        print_json(object)?;
        return Ok(0);
    }
    let least = if flags.verbose { Weight::Detail } else { Weight::Plain };
    let mut narrator = Narrator::default();
    let mut text = String::new();
    for record in &seen.records {
        for line in console::lines(&mut narrator, record) {
            if line.weight >= least {
                text.push_str(&console::format_line(record.at, &line));
                text.push('\n');
            }
        }
    }
    let plain = anstream::adapter::strip_str(&text).to_string();
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
    print_out(if terminal { &text } else { &plain })?;
    Ok(0)
}
