//! Clients and owners that are killed during a turn: the thread is complete, and nothing is paid
//! twice.

use rustix::process::{Pid, Signal, kill_process};

use super::{TOOL, run, thread, turn_contexts};
use crate::clients;
use crate::harness::until;
use crate::installs::Other;
use crate::stage::Stage;

/// One finished turn, and one that waits at a gate after a tool.
fn stage() -> Stage {
    Stage::prompts(&[
        ("START", "model: say <goto>NEXT</goto>"),
        (
            "NEXT",
            &format!(
                "{TOOL}
                model: wait gate
                model: say <result>whole</result>
                model: again
                model: say <result>again</result>"
            ),
        ),
    ])
}

const FLAGS: &str = "--backend codex --max-parallel 1";
const NEXT: &str = "START, <goto>NEXT</goto>, NEXT";

/// The charge of a request without reported cost, in micro-dollars: it read the 1100 tokens of the
/// one before.
const BROKEN_OFF: u64 = 5_500;

/// The client that runs.
fn client(stage: &Stage) -> Option<Pid> {
    let processes = stage.processes();
    let codex = processes.iter().find(|(_, words)| words.contains("/bin/codex exec"))?;
    Pid::from_raw(i32::try_from(codex.0).unwrap())
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn ended_client_is_continued_in_its_thread() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let stage = stage();
        let running = stage.start_run(FLAGS);
        stage.reaches("gate");
        kill_process(client(&stage).unwrap(), signal).unwrap();
        running.wait().prints("again\n").mentions(0, &[]);
        let turn_contexts = turn_contexts(&stage);
        assert_eq!(turn_contexts[..2], ["new A | START".to_owned(), format!("resume A | {NEXT}")]);
        // A plan that resumes a thread stays the same in a retry.
        let expected = format!("resume A | {NEXT}, exec_command, done, again NEXT");
        assert_eq!(turn_contexts[2], expected, "{signal:?}");
        assert_eq!(stage.events("turn_settled").len(), 2, "{signal:?}");
        let charges = stage.charges();
        // The request at the gate counts once it is half a second old.
        let paid = [8_000, 8_000 + BROKEN_OFF];
        assert!(paid.contains(&charges[1].1), "{signal:?}: what was paid before: {charges:?}");
        stage.leaves_nothing();
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn client_of_a_killed_owner_is_adopted() {
    let stage = stage();
    let running = stage.start_run(FLAGS);
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    assert!(client(&stage).is_some(), "the client lives on");
    let resumed = stage.start("resume r");
    until("the client is adopted", || resumed.stderr_contains("reused 1 turn"));
    stage.opens("gate");
    resumed.wait().prints("whole\n").mentions(0, &[]);
    assert_eq!(turn_contexts(&stage), ["new A | START".to_owned(), format!("resume A | {NEXT}")]);
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn finished_client_is_not_asked_again() {
    let stage = stage();
    let running = stage.start_run(FLAGS);
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    stage.opens("gate");
    until("the client is done", || client(&stage).is_none());
    stage.raymond("resume r").prints("whole\n").mentions(0, &["reused 1 turn"]);
    assert_eq!(stage.requests().len(), 3);
    assert_eq!(stage.spent(), stage.billed());
}

/// A turn that opens a thread, or branches one, waits at a gate; everything is killed.
#[track_caller]
fn killed_with_its_owner(states: &[(&str, &str)], expected: &[&str]) {
    let stage = Stage::prompts(states);
    let running = stage.start_run(FLAGS);
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    kill_process(client(&stage).unwrap(), Signal::KILL).unwrap();
    until("the client is gone", || client(&stage).is_none());
    let resumed = stage.raymond("resume r");
    resumed.prints("again\n").mentions(0, &[]);
    assert_eq!(turn_contexts(&stage), expected);
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn crash_continues_the_opened_thread() {
    let script = format!(
        "{TOOL}\nmodel: wait gate\nmodel: say x\nmodel: again\nmodel: say <result>again</result>"
    );
    killed_with_its_owner(
        &[("START", &script)],
        &["new A | START", "continue A | START, exec_command, done, again START"],
    );
    let call = "START, <call return='BACK'>SUB</call>";
    killed_with_its_owner(
        &[
            ("START", "model: say <call return='BACK'>SUB</call>"),
            ("SUB", &script),
            ("BACK", "model: say <result>{{result}}</result>"),
        ],
        &[
            "new A | START",
            &format!("branch A to B | {call}, SUB"),
            &format!("continue B | {call}, SUB, exec_command, done, again SUB"),
            &format!("resume A | {call}, BACK"),
        ],
    );
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn stopped_run_continues_its_thread() {
    let script = format!(
        "{TOOL}\nmodel: wait gate\nmodel: say x\nmodel: again\nmodel: say <result>again</result>"
    );
    let stage = Stage::prompts(&[("START", &script)]);
    let running = stage.start_run(FLAGS);
    stage.reaches("gate");
    running.signal(Signal::INT);
    running.wait().mentions(130, &[]);
    stage.leaves_nothing();
    let interrupted = stage.events("turn_interrupted");
    let opened = interrupted[0]["session"].as_str().unwrap();
    assert_eq!(opened, thread(&stage.requests()[0]), "the journal knows the thread");
    stage.raymond("resume r").prints("again\n").mentions(0, &[]);
    let turn_contexts = turn_contexts(&stage);
    assert_eq!(
        turn_contexts,
        ["new A | START", "continue A | START, exec_command, done, again START"]
    );
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn missing_or_old_client_is_rejected_before_spending() {
    let check = |entry: &dyn Fn(&Stage) -> String, message: &str, hint: &str| {
        let stage = Stage::prompts(&[("START", "model: say <result>x</result>")]);
        let entry = entry(&stage);
        let stage = stage.with(&entry);
        run(&stage, "").prints("").mentions(7, &[message, hint]);
        assert_eq!(stage.model.requests(), []);
    };
    let missing = |_: &Stage| "RAYMOND_CODEX=/nowhere/codex".to_owned();
    check(&missing, "could not find a program at /nowhere/codex", "npm install -g @openai/codex");
    let says = |said| move |stage: &Stage| Other { client: "codex", said }.install(stage);
    check(&says("codex-cli 0.55.0"), TOO_OLD, "install a newer version");
    let other = "\"2.1.325 (Claude Code)\" is not a version of codex";
    check(&says("2.1.325 (Claude Code)"), other, "set `codex` in the configuration");
}

const TOO_OLD: &str = ") is version 0.55.0, but Raymond needs 0.166.0 or later";

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn changed_client_version_is_noted_on_resume() {
    let stage = stage();
    let running = stage.start_run(FLAGS);
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    kill_process(client(&stage).unwrap(), Signal::KILL).unwrap();
    until("the client is gone", || client(&stage).is_none());
    let with = |stage: Stage, said: &str| {
        let entry = Other { client: "codex", said }.install(&stage);
        stage.with(&entry)
    };
    let stage = with(stage, "codex-cli 0.55.0");
    stage.raymond("resume r").prints("").mentions(7, &[TOO_OLD]);
    let stage = with(stage, "2.1.325 (Claude Code)");
    stage.raymond("resume r").prints("").mentions(7, &["is not a version of codex"]);
    assert_eq!(stage.events("run_resumed").len(), 0, "nothing was recorded");
    let stage = with(stage, "codex-cli 99.0.0");
    let resumed = stage.raymond("resume r");
    let installed = clients::version("codex");
    let note = format!("raymond: codex changed from version {installed} to 99.0.0\n");
    resumed.prints("again\n").mentions(0, &[&note]);
    let expected = format!("resume A | {NEXT}, exec_command, done, again NEXT");
    assert_eq!(turn_contexts(&stage)[1..], [format!("resume A | {NEXT}"), expected]);
    let recorded = |event: &str| stage.events(event)[0]["settings"]["clients"]["codex"].clone();
    assert_eq!(
        (recorded("run_started"), recorded("run_resumed")),
        (installed.into(), "99.0.0".into())
    );
    stage.leaves_nothing();
}
