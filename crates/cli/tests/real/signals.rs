//! Signals in the middle of a turn: to the client, and to Raymond itself.

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Running, until};
use crate::kills::audit::{Lost, holds};
use crate::kills::scene::{FLAGS, Kind, Scene, signal_clients, wait_for_closed_requests};

/// The points of a signal: while the model holds back its reply, and while a tool runs. The second
/// one loses a paid reply.
const POINTS: [(&str, Lost); 2] = [("first", Lost::Known(0)), ("tool", Lost::Known(1))];

/// A run that waits at a gate.
fn waiting_at(gate: &str, kind: Kind) -> (Scene, Running) {
    let scene = Scene::new(kind);
    if gate == "tool" {
        scene.stage.opens("first");
    }
    let running = scene.stage.start_run(FLAGS);
    scene.stage.reaches(gate);
    (scene, running)
}

/// Checks that an unreported cost is estimated from an earlier turn, or labelled if there is none.
#[track_caller]
fn is_charged(charge: &Value, kind: Kind) {
    let labelled = kind == Kind::Fresh && charge["basis"] == "unpriced";
    assert!(charge["amount"] != 0 || labelled, "{charge}");
}

/// Checks that the run continues in the same conversation: see [`holds`].
fn check_client_signal(signal: Signal, kind: Kind) {
    for (gate, lost) in POINTS {
        let (scene, running) = waiting_at(gate, kind);
        signal_clients(&scene.stage, signal);
        until("it is recorded", || !scene.turn_events("turn_failed").is_empty());
        let living = scene.stage.processes();
        let living: Vec<u32> = living.into_iter().map(|(pid, _)| pid).collect();
        assert_eq!(living, [running.pid()], "tools are ended before it is tried again");
        wait_for_closed_requests(&scene.stage);
        scene.open_all_gates();
        let output = running.wait();
        output.mentions(0, &["transient failure: the client ", "retry 1 of 5 follows"]);
        holds(&scene, lost, &output);
        let [failed] = &scene.turn_events("turn_failed")[..] else { panic!("{gate}") };
        assert!(failed["failure"]["transient"].is_object(), "{failed}");
        is_charged(&failed["charge"], kind);
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn interrupted_client_of_fresh_turn_is_continued() {
    check_client_signal(Signal::INT, Kind::Fresh);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn terminated_client_of_fresh_turn_is_continued() {
    check_client_signal(Signal::TERM, Kind::Fresh);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn killed_client_of_fresh_turn_is_continued() {
    check_client_signal(Signal::KILL, Kind::Fresh);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn interrupted_client_of_resumed_turn_is_continued() {
    check_client_signal(Signal::INT, Kind::Resumed);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn terminated_client_of_resumed_turn_is_continued() {
    check_client_signal(Signal::TERM, Kind::Resumed);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn killed_client_of_resumed_turn_is_continued() {
    check_client_signal(Signal::KILL, Kind::Resumed);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn interrupted_client_of_branching_turn_is_continued() {
    check_client_signal(Signal::INT, Kind::Branching);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn terminated_client_of_branching_turn_is_continued() {
    check_client_signal(Signal::TERM, Kind::Branching);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn killed_client_of_branching_turn_is_continued() {
    check_client_signal(Signal::KILL, Kind::Branching);
}

fn check_owner_signal(signal: Signal, code: i32, kind: Kind) {
    for (gate, lost) in POINTS {
        let (scene, running) = waiting_at(gate, kind);
        running.signal(signal);
        running.wait().prints("").mentions(code, &["to continue: raymond resume r"]);
        scene.stage.leaves_nothing();
        let status = scene.stage.raymond("status r --json").json();
        assert_eq!(status["status"], "stopped", "{status}");
        let [cut] = &scene.turn_events("turn_interrupted")[..] else { panic!("{gate}") };
        is_charged(&cut["charge"], kind);
        wait_for_closed_requests(&scene.stage);
        scene.open_all_gates();
        let output = scene.stage.raymond("resume r");
        let reused = match kind {
            Kind::Fresh => "reused 0 turns ($0.00)",
            Kind::Resumed | Kind::Branching => "reused 1 turn ($0.0060)",
        };
        output.mentions(0, &[&format!("{reused}, continuing 1, repeating 0")]);
        holds(&scene, lost, &output);
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn ctrl_c_in_fresh_turn_can_be_resumed() {
    check_owner_signal(Signal::INT, 130, Kind::Fresh);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn sigterm_in_fresh_turn_can_be_resumed() {
    check_owner_signal(Signal::TERM, 143, Kind::Fresh);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn ctrl_c_in_resumed_turn_can_be_resumed() {
    check_owner_signal(Signal::INT, 130, Kind::Resumed);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn sigterm_in_resumed_turn_can_be_resumed() {
    check_owner_signal(Signal::TERM, 143, Kind::Resumed);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn ctrl_c_in_branching_turn_can_be_resumed() {
    check_owner_signal(Signal::INT, 130, Kind::Branching);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn sigterm_in_branching_turn_can_be_resumed() {
    check_owner_signal(Signal::TERM, 143, Kind::Branching);
}
