//! Signals in the middle of a turn: to the client, and to Raymond itself.

use rustix::process::Signal;

use crate::harness::{Running, until};
use crate::kills::audit::{Lost, holds};
use crate::kills::scene::{FLAGS, Kind, Scene, nobody_is_answered, signal_clients};
use crate::shown;

/// Where a signal strikes: while the model holds its reply, and while a tool runs. The second one costs
/// a reply that was paid.
const POINTS: [(&str, Lost); 2] = [("first", Lost::Known(0)), ("tool", Lost::Known(1))];

/// A run that goes on in a conversation, and waits at a gate.
fn waiting_at(gate: &str) -> (Scene, Running) {
    let scene = Scene::new(Kind::Resumed);
    if gate == "tool" {
        scene.stage.opens("first");
    }
    let running = scene.stage.start_run(FLAGS);
    scene.stage.reaches(gate);
    (scene, running)
}

#[track_caller]
fn is_one_conversation(scene: &Scene) {
    let requests = scene.stage.requests();
    let first = shown::session(&requests[0]).to_owned();
    assert!(requests.iter().all(|seen| shown::session(seen) == first), "{requests:#?}");
}

fn a_client_is_hit_by(signal: Signal) {
    for (gate, lost) in POINTS {
        let (scene, running) = waiting_at(gate);
        signal_clients(&scene.stage, signal);
        until("it is recorded", || !scene.of_the_turn("turn_failed").is_empty());
        let living = scene.stage.processes();
        let living: Vec<u32> = living.into_iter().map(|(pid, _)| pid).collect();
        assert_eq!(living, [running.pid()], "tools are ended before it is tried again");
        nobody_is_answered(&scene.stage);
        scene.opens_all();
        let output = running.wait();
        output.mentions(0, &["transient failure: the client ", "retry 1 of 5 follows"]);
        holds(&scene, lost, &output);
        is_one_conversation(&scene);
        let [failed] = &scene.of_the_turn("turn_failed")[..] else { panic!("{gate}") };
        assert!(failed["failure"]["transient"].is_object(), "{failed}");
        assert_ne!(failed["charge"]["amount"], 0, "{failed}");
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_client_that_is_interrupted_is_gone_on_with() {
    a_client_is_hit_by(Signal::INT);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_client_that_is_terminated_is_gone_on_with() {
    a_client_is_hit_by(Signal::TERM);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn a_client_that_is_killed_is_gone_on_with() {
    a_client_is_hit_by(Signal::KILL);
}

fn raymond_is_hit_by(signal: Signal, code: i32) {
    for (gate, lost) in POINTS {
        let (scene, running) = waiting_at(gate);
        running.signal(signal);
        running.wait().prints("").mentions(code, &["to go on: raymond resume r"]);
        scene.stage.leaves_nothing();
        let status = scene.stage.raymond("status r --json").json();
        assert_eq!(status["status"], "stopped", "{status}");
        let [cut] = &scene.of_the_turn("turn_interrupted")[..] else { panic!("{gate}") };
        assert_ne!(cut["charge"]["amount"], 0, "{cut}");
        nobody_is_answered(&scene.stage);
        scene.opens_all();
        let output = scene.stage.raymond("resume r");
        output.mentions(0, &["reused 1 turn ($0.0060), continuing 1, repeating 0"]);
        holds(&scene, lost, &output);
        is_one_conversation(&scene);
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn ctrl_c_ends_the_client_and_its_tools_and_a_resume_goes_on() {
    raymond_is_hit_by(Signal::INT, 130);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn sigterm_ends_the_client_and_its_tools_and_a_resume_goes_on() {
    raymond_is_hit_by(Signal::TERM, 143);
}
