//! `raymond replay`: would this release have decided the same?
//!
//! It looks and changes nothing: no lock is taken, and a run that is driven meanwhile goes on.

use raymond_core::run::replay::{Decided, Difference};
use raymond_engine::inspect::InspectError;
use raymond_engine::replay::{Replayed, replay as decide_again};
use raymond_store::journal::{self, Tail};
use serde_json::{Value, json};

use crate::args::Look;
use crate::failure::Failure;
use crate::{json as shapes, runs};

use super::{print_json, print_out};

/// Exit code 1: something would be decided otherwise.
const DIFFERS: u8 = 1;

pub(crate) fn replay(flags: &Look) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    // Whatever is wrong with the journal of a run is told as by every command that looks.
    let seen = runs::look(&project, &run)?;
    let paths = project.paths(&run);
    if let Tail::Damaged(damaged) = seen.journal.tail {
        let damaged = journal::Error::Damaged { path: paths.journal, damaged };
        return Err(Failure::from(InspectError::Journal(damaged)).about(&run));
    }
    let replayed = decide_again(project.disk.as_ref(), &paths.journal, &project.blobs(&paths));
    let replayed = replayed.map_err(|error| Failure::from(error).about(&run))?;
    let Replayed { records, difference, .. } = replayed;
    if flags.json {
        let difference = difference.as_deref().map(object);
        print_json(json!({
            "version": shapes::VERSION, "run_id": run, "records": records, "difference": difference,
        }))?;
    } else if let Some(difference) = &difference {
        print_out(&format!("{difference}\n"))?;
    } else {
        let records = raymond_core::view::counted(records, "record");
        print_out(&format!("{records}, decided the same\n"))?;
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
