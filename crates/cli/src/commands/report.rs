//! Reports how a run ended: the result of a completed run on stdout, the summary on stderr, and the
//! exit code.

mod summary;

use std::io::stderr;

use raymond_core::budget::Micros;
use raymond_core::view::{RunView, Status};
use raymond_engine::driver::Head;
use raymond_store::Blobs;

use crate::args::OutputFlags;
use crate::console::AlreadyShown;
use crate::failure::Failure;
use crate::sanitize::styled;
use crate::status_summary::StatusSummary;
use crate::{streams, terminal};

use super::result;
use summary::Summary;

/// Prints the result of a run, or the object of `--json`.
pub(super) fn report(
    head: &Head,
    status: Status,
    blobs: &Blobs,
    said: &AlreadyShown,
) -> Result<(), Failure> {
    let place = StatusSummary::of(head, status);
    let (columns, edge) = (terminal::width(), terminal::edge(&stderr()));
    let output = said.output;
    let view = place.view(head);
    for line in (Summary { head, view: &view, place: &place, said, columns, edge }).lines() {
        streams::print_error_line(&styled(&line));
    }
    print_result(head, &place, blobs, output)
}

/// Prints the result of a run that ended before, without a summary.
pub(super) fn report_result(
    head: &Head,
    status: Status,
    blobs: &Blobs,
    output: OutputFlags,
) -> Result<(), Failure> {
    print_result(head, &StatusSummary::of(head, status), blobs, output)
}

fn print_result(
    head: &Head,
    place: &StatusSummary,
    blobs: &Blobs,
    output: OutputFlags,
) -> Result<(), Failure> {
    match (output.json, output.events) {
        (true, _) => result::print_run(head, place, blobs),
        // With `--events`, stdout contains only lines of JSON.
        (false, true) => Ok(()),
        (false, false) => result::print_main(head, place.status, blobs),
    }
}

/// Returns the meaning of the spent amount. Replies from a file cost no money.
pub(super) fn basis(view: &RunView) -> String {
    let rehearsed = view.totals.rehearsed;
    if view.spent == Micros::ZERO {
        String::new()
    } else if rehearsed == view.spent {
        " (rehearsal)".to_owned()
    } else if rehearsed > Micros::ZERO {
        format!(" (list prices; {rehearsed} of it rehearsed)")
    } else {
        " (list prices)".to_owned()
    }
}

/// Describes uncertain costs: `$0.30 of it estimated`, `2 attempts are unpriced`.
pub(super) fn uncertain(view: &RunView) -> Vec<String> {
    let estimated = view.totals.estimated;
    let estimated = (estimated > Micros::ZERO).then(|| format!("{estimated} of it estimated"));
    let unpriced = match view.unpriced {
        0 => None,
        1 => Some("1 attempt is unpriced".to_owned()),
        several => Some(format!("{several} attempts are unpriced")),
    };
    estimated.into_iter().chain(unpriced).collect()
}
