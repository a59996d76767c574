//! The result of a run as data: the result of `main`, or the object of `--json` with all results.
//!
//! A result is printed byte for byte, without redaction, because it is data for another program.

use std::io::IsTerminal as _;

use raymond_core::view::Status;
use raymond_engine::driver::Head;
use raymond_engine::observe;
use raymond_engine::output::output;
use raymond_store::Blobs;

use crate::failure::Failure;
use crate::json::{self, Layout};
use crate::sanitize::sanitized;
use crate::secrets::redacted_json;
use crate::status_summary::StatusSummary;

use super::write_stdout;

/// Prints the object of a run, with the results of all ended agents.
pub(super) fn print_run(head: &Head, place: &StatusSummary, blobs: &Blobs) -> Result<(), Failure> {
    print_object(json::run(&place.view(head), place), head, blobs)
}

/// Prints an object about a run, with the same results.
pub(super) fn print_object(
    object: serde_json::Value,
    head: &Head,
    blobs: &Blobs,
) -> Result<(), Failure> {
    // Redacted before the results are added, because results stay byte for byte.
    let mut object = redacted_json(object);
    object["results"] = json::results(head, blobs);
    let failures = head.run.handed_failures.iter();
    let failures: serde_json::Map<String, serde_json::Value> =
        failures.map(|(agent, failure)| (agent.to_string(), failure.to_string().into())).collect();
    if !failures.is_empty() {
        object["handed_failures"] = redacted_json(failures.into());
    }
    if let Some(output) = output(&head.run, blobs)? {
        object["output"] = output;
    }
    write_stdout(&(json::text(&object, Layout::Indented) + "\n"))
}

/// Prints the result of `main` of a completed run, if there is one. A run that did not complete
/// prints nothing: `raymond run flow > out` must not fill `out` with half a result or a reason.
pub(super) fn print_main(head: &Head, status: Status, blobs: &Blobs) -> Result<(), Failure> {
    if status != Status::Completed {
        return Ok(());
    }
    let Some(mut text) = of_main(head, blobs)? else { return Ok(()) };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    // A pipe gets the exact bytes; on a terminal, control characters in a result would be
    // dangerous.
    let shown = std::io::stdout().is_terminal();
    write_stdout(&if shown { sanitized(&text) } else { text })
}

/// Returns the result of `main`: `None` for an exhausted loop. The result of a document is its
/// output, or else one JSON object with the results of all steps.
pub(super) fn of_main(head: &Head, blobs: &Blobs) -> Result<Option<String>, Failure> {
    let result = head.run.main_result();
    if let (Some(flow), Some(_)) = (head.run.program.steps(), result) {
        let all = || json::steps(flow, blobs).into();
        let printed = output(&head.run, blobs)?.unwrap_or_else(all);
        return Ok(Some(json::text(&printed, Layout::Indented)));
    }
    // An exhausted loop completes without an accepted result.
    let result = result.filter(|_| head.ledger.exhausted.is_none());
    Ok(result.map(|result| observe::load(blobs, result)).transpose()?)
}
