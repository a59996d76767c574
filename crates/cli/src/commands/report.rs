//! How a run went: the result on stdout, everything else on stderr, and the exit code.

use raymond_core::ids::AgentId;
use raymond_core::machine::{Agent, Standing};
use raymond_core::run::Run;
use raymond_core::view::Status;
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
    let place = Place::of(&head.run, status);
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
        Some(result) if !talk.events => {
            let mut text = observe::load(blobs, result)?;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            hand_over(&text)
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
    crate::say!("{status}: {why} · {}", money(head));
    name_failed(&head.run);
    match status {
        Status::Completed => {}
        Status::Cancelled => crate::say!("to start anew: {way_out}"),
        Status::Running
        | Status::Waiting(..)
        | Status::Failed
        | Status::OverBudget
        | Status::Stopped
        | Status::Interrupted => crate::say!("to go on: {way_out}"),
    }
}

/// `spent $9.87 of $10.00; REVIEW.md took 61 %`
fn money(head: &Head) -> String {
    let run = &head.run;
    let mut parts = vec![match run.settings.budget {
        Some(cap) => format!("spent {} of {cap}", run.spent),
        None => format!("spent {}", run.spent),
    }];
    if let Some((state, amount)) = head.ledger.dearest() {
        let percent = u128::from(amount.0) * 100 / u128::from(run.spent.0.max(1));
        parts.push(format!("{state} took {percent} %"));
    }
    parts.extend(unpriced(run));
    parts.join("; ")
}

/// `2 turns are unpriced`, when any are.
pub(super) fn unpriced(run: &Run) -> Option<String> {
    match run.unpriced {
        0 => None,
        1 => Some("1 turn is unpriced".to_owned()),
        several => Some(format!("{several} turns are unpriced")),
    }
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
