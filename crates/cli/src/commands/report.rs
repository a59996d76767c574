//! How a run went: the result on stdout, everything else on stderr, and the exit code.

mod summary;

use std::io::IsTerminal as _;

use raymond_core::budget::Micros;
use raymond_core::ids::AgentId;
use raymond_core::view::Status;
use raymond_engine::driver::Head;
use raymond_engine::observe;
use raymond_engine::shell::Signal;
use raymond_store::Blobs;

use crate::args::Talk;
use crate::failure::Failure;
use crate::place::Place;
use crate::secrets::redacted_json;
use crate::words::plain;
use crate::{console, json};

use super::hand_over;
use summary::Summary;

/// Prints the result of a run, or the object that `--json` asks for.
pub(super) fn report(
    head: &Head,
    status: Status,
    blobs: &Blobs,
    talk: Talk,
) -> Result<(), Failure> {
    let place = Place::of(head, status);
    let summary = Summary { head, place: &place, columns: console::width() };
    for line in summary.lines(talk) {
        crate::say!("{line}");
    }
    if talk.json {
        let mut object = redacted_json(json::run(head, &place));
        object["results"] = json::results(head, blobs);
        return hand_over(&(json::text(&object, json::Layout::Indented) + "\n"));
    }
    match head.ledger.results.get(&AgentId::main()) {
        // A loop that had enough has no result, not an empty one.
        Some(result) if !talk.events && head.ledger.exhausted.is_none() => {
            let mut text = observe::load(blobs, result)?;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            // Data for whoever reads it; a terminal would obey it.
            let shown = std::io::stdout().is_terminal();
            hand_over(&if shown { plain(&text) } else { text })
        }
        Some(_) | None => Ok(()),
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
