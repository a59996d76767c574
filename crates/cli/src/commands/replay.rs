//! `raymond replay`: decides the journal of a run again, and reports the first difference.
//!
//! It takes no lock and changes nothing, so a running run continues meanwhile.

use raymond_core::decide::replay::{Decided, Difference};
use raymond_engine::inspect::InspectError;
use raymond_engine::replay::{Replayed, replay as decide_again};
use raymond_store::journal::{self, Tail};
use serde_json::{Value, json};

use crate::args::RunArgument;
use crate::failure::Failure;
use crate::{json as shapes, runs};

use super::{print_json, print_text};

/// Exit code: a decision differs.
const DIFFERS: u8 = 1;

pub(crate) fn replay(flags: &RunArgument) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    // Damage is reported as by every command that reads a run.
    let seen = runs::look(&project, &run)?;
    let paths = project.paths(&run);
    if let Tail::Damaged(damaged) = seen.journal.tail {
        let damaged = journal::Error::Damaged { path: paths.journal, damaged };
        return Err(Failure::from(InspectError::Journal(damaged)).naming_run(&run));
    }
    let replayed = decide_again(project.disk.as_ref(), &paths.journal, &project.blobs(&paths));
    let replayed = replayed.map_err(|error| Failure::from(error).naming_run(&run))?;
    let Replayed { records, difference, .. } = replayed;
    if flags.json {
        let difference = difference.as_deref().map(object);
        print_json(json!({
            "version": shapes::VERSION, "run_id": run, "records": records, "difference": difference,
        }))?;
    } else if let Some(difference) = &difference {
        print_text(&format!("{difference}\n"))?;
    } else {
        let records = raymond_core::text::counted(records, "record");
        print_text(&format!("{records}: every decision is the same\n"))?;
    }
    Ok(if difference.is_some() { DIFFERS } else { 0 })
}

fn object(difference: &Difference) -> Value {
    let Difference { record, step, event, recorded, decided } = difference;
    let (decided, refused) = match decided {
        Decided::Event(event) => (Some(event), None),
        Decided::Nothing => (None, None),
        Decided::Refused(refusal) => (None, Some(refusal.to_string())),
    };
    json!({
        "record": record, "step": step, "event": event,
        "recorded": recorded, "decided": decided, "refused": refused,
    })
}
