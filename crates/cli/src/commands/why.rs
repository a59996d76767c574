//! `raymond why`: one sentence, and the command that changes it.

use raymond_core::view::{way_out, why as sentence};
use raymond_engine::look::look;
use serde_json::json;

use crate::args::Look;
use crate::failure::Failure;
use crate::runs;

use super::{print_json, print_out};

pub(crate) fn why(flags: &Look) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = look(&project, &run)?;
    let why = sentence(&seen.head.run, seen.status);
    let way_out = way_out(seen.status).line(&run, &seen.head.run.workflow);
    if flags.json {
        let status = seen.status.as_str();
        print_json(&json!({ "run_id": run, "status": status, "why": why, "way_out": way_out }))?;
    } else {
        print_out(&format!("{}: {why}\n→ {way_out}\n", seen.status))?;
    }
    Ok(0)
}
