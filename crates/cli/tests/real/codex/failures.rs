//! Failures on the way to the model, and their kinds.

use std::time::{Duration, Instant};

use raymond_testkit::model::NetworkState;
use serde_json::{Value, json};

use super::{TOOL, failures, run, turn_contexts};
use crate::harness::{is_once_quicker, until};
use crate::shown::conversation;
use crate::stage::Stage;

/// Runs a prompt that meets this failure once, and is then answered.
#[track_caller]
fn check(model: &str, flags: &str, code: i32, expected: &[Value]) -> Stage {
    let lines = format!("{model}\nmodel: again\nmodel: say <result>x</result>");
    let stage = Stage::prompts(&[("START", &lines)]);
    run(&stage, flags).mentions(code, &[]);
    assert_eq!(failures(&stage), expected, "{model}");
    stage.leaves_nothing();
    stage
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn transient_failure_is_retried_in_its_thread() {
    let transient = |why: &str| json!({ "transient": { "why": why } });
    let busy = "We’re currently experiencing high demand, which may cause temporary errors.";
    let stage = check("model: error 500", "", 0, &[transient(busy)]);
    assert_eq!(turn_contexts(&stage)[0], "new A | START");
    assert!(turn_contexts(&stage).last().unwrap().starts_with("continue A | START, again START"));
    let broke = "stream disconnected before completion: ";
    let cut = format!("{broke}Transport error: network error: error decoding response body");
    check("model: cut 3\nmodel: say half", "", 0, &[transient(&cut)]);
    let dropped = format!("{broke}error sending request");
    check("model: drop", "", 0, &[transient(&dropped)]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn missing_login_is_reported_at_the_first_error() {
    let lines = "model: error 401 message=no\nmodel: again\nmodel: say <result>x</result>";
    let stage = Stage::prompts(&[("START", lines)]);
    let output = run(&stage, "");
    output.mentions(3, &["codex login"]);
    let failed = failures(&stage);
    let why = failed[0]["auth"]["why"].as_str().unwrap();
    assert!(why.contains("unexpected status 401 Unauthorized"), "{why}");
    // The client would try six times; on a busy machine its second try may start before Raymond
    // ends it.
    let tried = stage.requests().len();
    assert!((1..=2).contains(&tried), "the client tries again in vain: {tried} requests");
    assert_eq!(stage.spent(), 0);
    stage.raymond("resume r").prints("x\n").mentions(0, &[]);
    assert!(
        turn_contexts(&stage)[1].starts_with("continue A | START, again START"),
        "{:?}",
        turn_contexts(&stage)
    );
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn usage_limit_is_shown_with_its_end() {
    let limit = "model: error 429 type=usage_limit_reached header:x-codex-primary-used-percent=100 \
                 header:x-codex-primary-window-minutes=300 \
                 header:x-codex-primary-reset-at=4102444800 message=enough";
    let stage = check(
        limit,
        "--no-wait",
        4,
        &[json!({ "quota": {
        "until": 4_102_444_800_000_u64,
        "why": "You’ve hit your usage limit. Try again later."
    } })],
    );
    assert_eq!(stage.spent(), 0);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn no_wait_ends_a_client_that_waits() {
    let stage = Stage::prompts(&[("START", "model: error 429 retry-after=3600\nmodel: say never")]);
    run(&stage, "--no-wait").mentions(4, &["429"]);
    let failed = failures(&stage);
    assert_eq!(failed[0]["quota"]["until"], Value::Null, "{failed:?}");
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn permanent_failure_fails_the_agent() {
    let check = |model: &str, why: &str| {
        let stage = Stage::prompts(&[("START", model)]);
        run(&stage, "").mentions(1, &[why]);
        let failed = failures(&stage);
        let found = failed[0]["task"]["why"].as_str().unwrap_or_default();
        assert!(found.contains(why), "{failed:?}");
        assert_eq!(failed.len(), 1);
    };
    check("model: error 400 message=too-odd", "too-odd");
    check("model: error 404 type=model_not_found message=no-such-model", "no-such-model");
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn warning_named_error_fails_nothing() {
    let stage = Stage::prompts(&[(
        "START",
        &format!("model: gpt-5.2-codex\n---\n{TOOL}\nmodel: say <result>x</result>"),
    )]);
    run(&stage, "").prints("x\n").mentions(0, &["Model metadata for `gpt-5.2-codex` not found"]);
    assert_eq!(failures(&stage), Vec::<Value>::new());
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn missing_thread_is_never_replaced_silently() {
    let stage = Stage::prompts(&[
        ("START", "model: say <goto>SH</goto>"),
        ("NEXT", "model: say <result>x</result>"),
    ]);
    let forget = "#!/bin/bash\nrm -rf \"$CODEX_HOME/sessions\"\necho '<goto>NEXT</goto>'\n";
    stage.state("SH.sh", forget);
    run(&stage, "").mentions(1, &["knows no session"]);
    assert_eq!(stage.requests().len(), 1, "nothing was asked in another thread");
    let resumed = stage.raymond("resume r --on-lost-session fresh");
    resumed.prints("x\n").mentions(0, &[]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn unreachable_provider_costs_nothing_until_it_returns() {
    let stage = Stage::prompts(&[("START", "model: say <result>x</result>")]);
    stage.model.set_network(NetworkState::Refusing).unwrap();
    let waits = |attempt: u32| {
        let transcript = format!(".raymond/runs/r/transcripts/main.1.1.{attempt}.jsonl");
        until("the client waits", || stage.project.read(&transcript).contains("Reconnecting..."));
        let notice = "tries again: Reconnecting... waiting for network (Connection failed";
        let logs = stage.raymond("logs r");
        assert!(logs.stdout.contains(notice), "{logs:?}");
    };
    // The client stops at the first signal; Raymond sends the last one after this time.
    let patience_for_one_signal = Duration::from_secs(5);
    let mut attempts = 0;
    is_once_quicker(patience_for_one_signal, || {
        attempts += 1;
        let running = match attempts {
            1 => stage.start_run("--backend codex --retries 0"),
            _ => stage.start("resume r"),
        };
        waits(attempts);
        let asked = Instant::now();
        stage.raymond("stop r").mentions(0, &["r: stopped"]);
        let span = asked.elapsed();
        running.wait().prints("").mentions(130, &["stopped: a user stopped it"]);
        stage.leaves_nothing();
        assert_eq!(stage.spent(), 0, "nothing was ever answered");
        span
    });

    let resumed = stage.start("resume r");
    waits(attempts + 1);
    stage.model.set_network(NetworkState::Normal).unwrap();
    resumed.wait().prints("x\n").mentions(0, &[]);
    assert_eq!(failures(&stage), Vec::<Value>::new(), "the client continues by itself");
    let shown: Vec<String> =
        stage.requests().iter().map(|seen| conversation(&seen.conversation)).collect();
    let again = ", again START".repeat(usize::try_from(attempts).unwrap());
    assert_eq!(shown, [format!("START{again}")]);
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}
