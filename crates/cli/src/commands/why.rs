//! `raymond why`: one sentence, and the command that changes it.

use serde_json::json;

use crate::args::Look;
use crate::failure::Failure;
use crate::place::Place;
use crate::runs;

use super::{print_json, print_out};

pub(crate) fn why(flags: &Look) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let Place { status, why, way_out } = Place::seen(&runs::look(&project, &run)?);
    if flags.json {
        let status = status.as_str();
        print_json(&json!({ "run_id": run, "status": status, "why": why, "way_out": way_out }))?;
    } else {
        print_out(&format!("{status}: {why}\n→ {way_out}\n"))?;
    }
    Ok(0)
}
