//! Requests to stop a run that no process drives.

use raymond_core::run::Ending;
use raymond_core::run::effect::in_flight;

use super::*;
use crate::owned::OwnedRun;
use crate::test_runs::{TestRun, recorded, stopped};

fn stop(key: &str) -> Input {
    Input::Stop { mode: StopMode::Now, by: StopOrigin::Command, key: key.to_owned() }
}

/// Asks under the key `asked`, as the command does when it finds no owner.
fn asked_again(owned: OwnedRun) -> OwnedRun {
    let turn = in_flight(&owned.head.run).next().map(|turn| stopped(&turn.id, turn.attempt));
    let reports = turn.into_iter().collect();
    let inputs = stop_inputs(&owned.head.run, reports, StopMode::Now, "asked", "afresh");
    recorded(owned, inputs)
}

/// The run answered this request before, and was resumed since.
fn resumed(setup: &TestRun) -> OwnedRun {
    let owned = setup.begun(&[("START.md", "go")]);
    let turn = in_flight(&owned.head.run).next().unwrap();
    let turn = stopped(&turn.id, turn.attempt);
    let owned = recorded(owned, vec![stop("asked"), turn]);
    assert_eq!(owned.head.run.phase, Phase::Ended(Ending::Stopped));
    let owned = recorded(owned, resume_inputs(Vec::new(), TestRun::settings()));
    assert_eq!(owned.head.run.phase, Phase::Open);
    owned
}

#[test]
fn resumed_run_is_stopped_by_repeated_request() {
    let setup = TestRun::in_memory();
    let stopped = asked_again(resumed(&setup)).head.run;
    assert_eq!(stopped.phase, Phase::Ended(Ending::Stopped));
    assert_eq!(in_flight(&stopped).count(), 0, "no process runs its turns");
    assert!(stopped.keys.contains("afresh"));
}

#[test]
fn request_keeps_its_key_unless_answered() {
    let setup = TestRun::in_memory();
    let fresh = asked_again(setup.begun(&[("START.md", "go")])).head.run;
    assert!(fresh.keys.contains("asked") && !fresh.keys.contains("afresh"), "{:?}", fresh.keys);
    // The owner recorded the request, and died before its turns had ended.
    let setup = TestRun::in_memory();
    let stopping = recorded(setup.begun(&[("START.md", "go")]), vec![stop("asked")]);
    assert_eq!(stopping.head.run.phase, Phase::Stopping(StopMode::Now));
    let stopped = asked_again(stopping).head.run;
    assert_eq!(stopped.phase, Phase::Ended(Ending::Stopped));
    assert!(!stopped.keys.contains("afresh"), "it is the same request");
}
