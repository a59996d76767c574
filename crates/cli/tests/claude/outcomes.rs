//! The outcome table of the client: every way in which an invocation can end, and what it means.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::until;
use crate::stage::Stage;

/// Runs a state without retries, and checks the exit code and the kinds of its failures.
#[track_caller]
fn check(lines: &str, code: i32, failures: &[&str]) -> Stage {
    let stage = Stage::prompts(&[("START", lines)]);
    let output = stage.run("--retries 0 --reminders 0 --no-wait");
    assert_eq!((output.code(), stage.failures()), (code, words(failures)), "{lines}: {output:?}");
    stage.leaves_nothing();
    stage
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn success_ignores_exit_code_and_stderr() {
    check("fake: say <result>x</result>", 0, &[]);
    check("fake: say <result>x</result>\nfake: exit 1", 0, &[]);
    check("fake: say <result>x</result>\nfake: stderr Error: it broke\nfake: exit 7", 0, &[]);
}

#[test]
fn api_error_status_decides_the_failure_kind() {
    check("fake: error 400", 1, &["task"]);
    check("fake: error 404", 1, &["task"]);
    check("fake: error 413", 1, &["task"]);
    check("fake: refuse", 1, &["task"]);
    check("fake: error 401", 3, &["auth"]);
    check("fake: error 403", 3, &["auth"]);
    check("fake: error 400 billing_error", 3, &["auth"]);
    check("fake: quota", 4, &["quota"]);
    check("fake: quota 3600", 4, &["quota"]);
    check("fake: error 500", 1, &["transient"]);
    check("fake: error 503", 1, &["transient"]);
    check("fake: error 529", 1, &["transient"]);
    check("fake: error none", 1, &["transient"]);
}

#[test]
fn error_ignores_the_exit_code() {
    check("fake: exit 0\nfake: error 400", 1, &["task"]);
    check("fake: exit 0\nfake: error 529", 1, &["transient"]);
}

// proves: S35
#[test]
fn tag_in_an_error_is_ignored() {
    check("fake: say <result>x</result>\nfake: error 529", 1, &["transient"]);
    check("fake: say <result>x</result>\nfake: error 400", 1, &["task"]);
}

#[test]
fn client_limits_and_failures_are_transient() {
    check("fake: max-turns", 1, &["transient"]);
    check("fake: fail something went wrong", 1, &["transient"]);
}

#[test]
fn missing_result_is_retried_with_stderr_as_reason() {
    check("fake: say <result>x</result>\nfake: no-result", 1, &["transient"]);
    check("fake: say <result>x</result>\nfake: half", 1, &["transient"]);
    check("fake: say <result>x</result>\nfake: kill", 1, &["transient"]);
    let stage = check(
        "fake: stderr Error: no such thing\nfake: no-result\nfake: exit 1",
        1,
        &["transient"],
    );
    let failed = &stage.project.events("r", "turn_failed")[0];
    let why = failed["failure"]["transient"]["why"].as_str().unwrap();
    assert!(why.contains("Error: no such thing"), "{why}");
}

#[test]
fn foreign_signal_is_retried() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
        let stage = Stage::prompts(&[("START", "fake: wait gate\nfake: say <result>x</result>")]);
        let running = stage.start_run("--retries 0");
        stage.reaches("gate");
        let client = i32::try_from(stage.invocations()[0].pid).unwrap();
        kill_process(Pid::from_raw(client).unwrap(), signal).unwrap();
        running.wait().mentions(1, &["failed: transient failure"]);
        assert_eq!(stage.failures(), ["transient"], "{signal:?}");
        stage.leaves_nothing();
    }
}

#[test]
fn message_without_text_has_no_tag() {
    let stage = check("fake: cost 0.01", 1, &[]);
    let failed = &stage.project.events("r", "agent_failed")[0];
    assert_eq!(failed["failure"]["protocol"]["fault"], json!({ "no_tag": {} }));
}

#[test]
fn unreadable_lines_are_kept_and_warn_once() {
    let stage = check(
        "fake: not-json
        fake: not-json
        fake: raw {\"type\":\"weather\",\"rain\":true}
        fake: raw [1, 2]
        fake: say <result>x</result>",
        0,
        &[],
    );
    let transcripts = stage.project.path(".raymond/runs/r/transcripts");
    let files = std::fs::read_dir(transcripts).unwrap().flatten();
    let text: String = files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "jsonl"))
        .map(|file| std::fs::read_to_string(file.path()).unwrap())
        .collect();
    assert_eq!(text.matches("this line is not JSON").count(), 2);
    assert!(text.contains("weather"));
    let warnings = stage.warnings();
    let said = warnings.iter().filter(|warning| warning.to_string().contains("JSON")).count();
    assert_eq!(said, 1, "{warnings:?}");
}

#[test]
fn refusal_of_the_client_is_quoted() {
    let said = "error: unknown option '--verbose'";
    let version = "test \"$1\" = --version && echo 2.1.325 && exit";
    let client = format!("#!/bin/sh\n{version}\necho \"{said}\" >&2\nexit 1\n");
    let stage = Stage::of(&[("wf/START.md", "go"), ("old-client", &client)]);
    let program = stage.project.path("old-client");
    stage.configure(&format!("claude = '{}'\n", program.display()));
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    stage.run("--retries 0").mentions(1, &[said]);
    assert_eq!(stage.failures(), ["transient"]);
    assert_eq!(stage.charges(), [("main.1.1".into(), 0, "reported".into())]);
}

#[test]
fn known_refusals_are_reported_before_the_start() {
    let stage = Stage::prompts(&[("START", "fake: say <result>x</result>")]);
    stage.run("--permission-mode yolo").prints("").mentions(2, &["permission mode \"yolo\""]);
    assert_eq!(stage.invocations().len(), 0);
    assert!(!stage.project.path(".raymond").exists());
}

#[test]
fn long_line_is_read() {
    let stage = check("fake: line 50000000\nfake: say <result>x</result>", 0, &[]);
    let memory = stage.warnings();
    assert_eq!(memory.len(), 1, "{memory:?}");
    let transcript = stage.project.read(".raymond/runs/r/transcripts/main.1.1.1.jsonl");
    assert!(transcript.len() < 100_000 && transcript.contains("[shortened: the line had"));
}

// proves: S25
#[test]
fn too_large_answer_fails_its_agent() {
    check("fake: say <result>\nfake: pad 70000000\nfake: more </result>", 1, &["output_too_large"]);
}

// proves: S32
#[test]
fn client_with_endless_output_is_ended() {
    let stage =
        check("fake: flood 1000000000\nfake: say <result>x</result>", 1, &["output_too_large"]);
    until("the client is gone", || stage.project.processes("r").is_empty());
}
