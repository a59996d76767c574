//! `raymond wait`: waits until a run has ended, prints its result if it completed, and exits with
//! its code.

use raymond_core::view::{OwnerState, Status};
use raymond_engine::request;

use crate::args::RunArgument;
use crate::exit_code;
use crate::failure::Failure;
use crate::runs;
use crate::status_summary::StatusSummary;
use crate::suspended_owner;

use super::result;

pub(crate) fn wait(flags: &RunArgument) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    runs::check_started(&project, &run)?;
    let mut report =
        |owner: &_| crate::say!("{run}: {}", suspended_owner::describe_with_hint(owner));
    let waited = crate::runtime::runtime()?.block_on(request::wait(&project, &run, &mut report));
    waited.map_err(|error| Failure::from(error).naming_run(&run))?;
    let seen = runs::look(&project, &run)?;
    // The wait is over, so an owner that still holds its lock is only exiting.
    let status = raymond_core::view::status(&seen.head.run, OwnerState::Gone);
    let summary = StatusSummary::of(&seen.head, status);
    let blobs = project.blobs(&project.paths(&run));
    if flags.json {
        result::print_run(&seen.head, &summary, &blobs)?;
    } else {
        crate::say!("{run}: {status}: {}", summary.why);
        if status != Status::Completed {
            crate::say!("→ {}", summary.advice());
        }
        result::print_main(&seen.head, status, &blobs)?;
    }
    Ok(exit_code::of_run(status))
}
