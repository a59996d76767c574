//! How a run went: the result on stdout, everything else on stderr, and the exit code.

use std::io::IsTerminal as _;

use raymond_core::budget::Micros;
use raymond_core::ids::AgentId;
use raymond_core::machine::{Agent, Standing};
use raymond_core::run::Run;
use raymond_core::view::costs::percent;
use raymond_core::view::{Denied, Status};
use raymond_engine::driver::Head;
use raymond_engine::observe;
use raymond_engine::shell::Signal;
use raymond_store::Blobs;

use crate::args::Talk;
use crate::failure::Failure;
use crate::json;
use crate::place::Place;
use crate::secrets::redacted_json;
use crate::words::plain;

use super::hand_over;

/// More failed agents are only counted.
const MOST_FAILED: usize = 20;

/// Prints the result of a run, or the object that `--json` asks for.
pub(super) fn report(
    head: &Head,
    status: Status,
    blobs: &Blobs,
    talk: Talk,
) -> Result<(), Failure> {
    let place = Place::of(head, status);
    // What failed has been told already.
    if !talk.quiet || !matches!(status, Status::Completed | Status::Failed) {
        summary(head, &place);
    }
    if talk.json {
        let mut object = redacted_json(json::run(head, &place));
        object["results"] = json::results(head, blobs);
        return hand_over(&format!("{object:#}\n"));
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

fn summary(head: &Head, place: &Place) {
    let Place { status, why, way_out, .. } = place;
    crate::say!("{status}: {why}");
    name_failed(&head.run);
    name_denied(head, *status);
    let next = match status {
        Status::Completed => None,
        Status::Cancelled => Some(format!("to start anew: {way_out}")),
        Status::Running
        | Status::Waiting(..)
        | Status::Failed
        | Status::OverBudget
        | Status::Stopped
        | Status::Interrupted => Some(format!("to go on: {way_out}")),
    };
    let parts: Vec<String> = money(head).into_iter().chain(next).collect();
    crate::say!("{}", parts.join("; "));
}

/// `spent $9.87 of $10.00 (list prices); REVIEW took 61 %`
fn money(head: &Head) -> Vec<String> {
    let Head { run, ledger, .. } = head;
    let cap = run.settings.budget.map(|cap| format!(" of {cap}")).unwrap_or_default();
    let list = if run.spent > Micros::ZERO { " (list prices)" } else { "" };
    let mut parts = vec![format!("spent {}{cap}{list}", run.spent)];
    if let Some((state, amount)) = ledger.dearest() {
        parts.push(format!("{} took {} %", state.stem(), percent(amount, run.spent)));
    }
    parts.extend(uncertain(head));
    parts
}

/// What clients were denied, and how to allow it.
fn name_denied(head: &Head, status: Status) {
    let allowed = &head.run.settings.permissions.allow;
    let Some(denied) = Denied::of(&head.ledger.denied, allowed) else { return };
    crate::say!("{}", plain(&denied.sentence()));
    match plain(&denied.flags()).as_str() {
        "" => {}
        flags if status.is_unfinished() => {
            crate::say!("allow them: raymond resume {} {flags}", head.run.id);
        }
        flags => crate::say!("to allow them next time: {flags}"),
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

/// The sentence above names the first one.
fn name_failed(run: &Run) {
    for id in run.failed.iter().skip(1).take(MOST_FAILED) {
        if let Some(Agent { standing: Standing::Failed { failure, .. }, visit, .. }) =
            run.agents.get(id)
        {
            crate::say!("  {id} failed at {}: {}", visit.state, plain(&failure.to_string()));
        }
    }
    if let Some(more @ 1..) = run.failed.len().checked_sub(1 + MOST_FAILED) {
        crate::say!("  … and {more} more");
    }
}
