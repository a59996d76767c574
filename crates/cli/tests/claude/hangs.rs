//! Clients and processes that do not end: Raymond ends each within its timeout, and no process is
//! left.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{is_once_quicker, until};
use crate::stage::Stage;

/// The time that a client has after one signal: 2 s until SIGTERM, and 3 s until SIGKILL.
const PATIENCE_FOR_ONE_SIGNAL: Duration = Duration::from_secs(5);

/// Runs a client that hangs, and checks which timeout ended it.
#[track_caller]
fn times_out(lines: &str, flags: &str, clock: &str) {
    let stage = Stage::prompts(&[("START", lines)]);
    stage.run(&format!("--retries 0 {flags}")).prints("").mentions(1, &["timed out"]);
    let failed = stage.project.events("r", "turn_failed");
    assert_eq!(failed[0]["failure"]["timeout"]["clock"], json!(clock), "{lines}");
    stage.leaves_nothing();
}

// proves: P11
#[test]
fn silent_client_is_ended() {
    times_out("fake: hang silent", "--timeout 1s", "wall");
}

// proves: P11
#[test]
fn client_that_stops_writing_is_ended() {
    times_out("fake: say thinking\nfake: hang stall", "--idle-timeout 1s", "idle");
}

#[test]
fn client_that_takes_too_long_is_ended() {
    times_out("fake: say thinking\nfake: hang stall", "--timeout 1s", "wall");
}

#[test]
fn timeouts_of_state_override_those_of_run() {
    times_out("timeout: 1s\n---\nfake: hang stall", "--timeout 1h", "wall");
    let talks = "idle_timeout: 1s\n---\nfake: say thinking\nfake: hang stall";
    times_out(talks, "--idle-timeout 1h", "idle");
}

// proves: P11, S37
#[test]
fn client_that_ignores_every_signal_is_killed() {
    times_out(
        "fake: ignore INT
        fake: ignore TERM
        fake: ignore HUP
        fake: grandchild
        fake: hang stall",
        "--timeout 1s",
        "wall",
    );
}

#[test]
fn timed_out_turn_is_retried_in_its_session() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: hang stall
        fake[2]: say <result>done</result>",
    )]);
    // The second client must answer within the same time, even on a busy machine.
    stage.run("--timeout 6s").prints("done\n").mentions(0, &["timed out"]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "resume A | START, again START"]);
    stage.leaves_nothing();
}

/// Checks that the run completes although its client leaves something behind.
#[track_caller]
fn ends_well(lines: &str) {
    let stage = Stage::prompts(&[
        ("START", &format!("{lines}\nfake: say <goto>END</goto>")),
        ("END", "fake: say <result>done</result>"),
    ]);
    stage.run("").prints("done\n").mentions(0, &[]);
    assert_eq!(stage.invocations().len(), 2);
    stage.leaves_nothing();
}

// proves: P11
#[test]
fn client_hanging_after_its_result_has_answered() {
    ends_well("fake: hang after-result");
}

#[test]
fn child_keeping_stdout_open_does_not_block_success() {
    ends_well("fake: grandchild");
}

#[test]
fn daemons_end_with_the_run() {
    ends_well("fake: daemon");
    ends_well("fake: bare-daemon");
}

#[test]
fn daemon_lives_until_the_run_ends() {
    let stage = Stage::prompts(&[
        ("START", "fake: daemon\nfake: say <goto>END</goto>"),
        ("END", "fake: wait gate\nfake: say <result>done</result>"),
    ]);
    let running = stage.start_run("");
    stage.reaches("gate");
    let [daemon] = stage.offspring().try_into().unwrap();
    assert!(stage.is_ours(daemon), "it outlives its turn");
    stage.opens("gate");
    running.wait().prints("done\n").mentions(0, &[]);
    stage.leaves_nothing();
}

// proves: P6
#[test]
fn every_end_of_a_run_ends_its_processes() {
    let lines = "fake: grandchild\nfake: daemon\nfake: bare-daemon\nfake: wait gate";
    let check = |end: &dyn Fn(&Stage, &crate::harness::Running), code: i32| {
        let stage = Stage::prompts(&[("START", lines)]);
        let running = stage.start_run("");
        stage.reaches("gate");
        end(&stage, &running);
        running.wait().mentions(code, &[]);
        stage.leaves_nothing();
    };
    check(&|_, running| running.signal(rustix::process::Signal::INT), 130);
    check(&|_, running| running.signal(rustix::process::Signal::TERM), 143);
    check(&|stage, _| drop(stage.raymond("stop r")), 130);
    check(&|stage, _| drop(stage.raymond("cancel r")), 8);
}

#[test]
fn second_signal_ends_a_stubborn_client_at_once() {
    let lines = "fake: ignore INT\nfake: ignore TERM\nfake: grandchild\nfake: wait gate";
    is_once_quicker(PATIENCE_FOR_ONE_SIGNAL, || {
        let stage = Stage::prompts(&[("START", lines)]);
        let running = stage.start_run("");
        stage.reaches("gate");
        let begun = Instant::now();
        running.signal(rustix::process::Signal::INT);
        let stops = || !stage.project.events("r", "stop_requested").is_empty();
        until("the first one is recorded", stops);
        running.signal(rustix::process::Signal::INT);
        running.wait().mentions(130, &["raymond resume r"]);
        let span = begun.elapsed();
        stage.leaves_nothing();
        span
    });
}

#[test]
fn stopped_turn_is_continued_in_its_session() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: hang stall
        fake[2]: say <result>done</result>",
    )]);
    let running = stage.start_run("");
    until("it hangs", || stage.invocations().len() == 1);
    stage.raymond("stop r").mentions(0, &["stopped"]);
    running.wait().mentions(130, &[]);
    stage.leaves_nothing();
    stage.raymond("resume r").prints("done\n").mentions(0, &[]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "resume A | START, again START"]);
}

#[test]
fn failure_of_one_agent_spares_other_clients() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <fork next='NEXT'>BAD</fork>"),
        ("BAD", "fake: grandchild\nfake: error 400"),
        ("NEXT", "fake: wait gate\nfake: say <result>done</result>"),
    ]);
    let running = stage.start_run("");
    stage.reaches("gate");
    until("the worker has failed", || !stage.project.events("r", "agent_failed").is_empty());
    stage.opens("gate");
    running.wait().prints("").mentions(1, &["  results  main  done\n"]);
    stage.leaves_nothing();
}
