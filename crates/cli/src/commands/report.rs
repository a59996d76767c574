//! How a run went: the result on stdout, everything else on stderr, and the exit code.

mod summary;

use std::io::stderr;

use raymond_core::budget::Micros;
use raymond_core::view::Status;
use raymond_engine::driver::Head;
use raymond_engine::runner::Signal;
use raymond_store::Blobs;

use crate::console::{self, Said};
use crate::failure::Failure;
use crate::place::Place;
use crate::words::styled;

use super::result;
use summary::Summary;

/// Prints the result of a run, or the object that `--json` asks for.
pub(super) fn report(
    head: &Head,
    status: Status,
    blobs: &Blobs,
    said: &Said,
) -> Result<(), Failure> {
    let place = Place::of(head, status);
    let (columns, edge) = (console::width(), console::edge(&stderr()));
    let talk = said.talk;
    for line in (Summary { head, place: &place, said, columns, edge }).lines() {
        super::print_error_line(&styled(&line));
    }
    match (talk.json, talk.events) {
        (true, _) => result::print_run(head, &place, blobs),
        (false, true) => Ok(()),
        (false, false) => result::print_main(head, blobs),
    }
}

/// The exit code of a run that ended here.
pub(super) const fn exit_code(status: Status, signal: Option<Signal>) -> u8 {
    match (status, signal) {
        (Status::Stopped | Status::Interrupted, Some(Signal::Terminate)) => 143,
        (Status::Stopped | Status::Interrupted, Some(Signal::HangUp)) => 129,
        (status, _) => status.exit_code(),
    }
}

/// What of the money is less than certain: `$0.30 of it estimated`, `2 turns are unpriced`.
pub(super) fn uncertain(head: &Head) -> Vec<String> {
    let Head { run, ledger, .. } = head;
    let estimated =
        (ledger.estimated > Micros::ZERO).then(|| format!("{} of it estimated", ledger.estimated));
    let unpriced = match run.unpriced {
        0 => None,
        1 => Some("1 turn is unpriced".to_owned()),
        several => Some(format!("{several} turns are unpriced")),
    };
    estimated.into_iter().chain(unpriced).collect()
}
