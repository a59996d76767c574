use std::path::PathBuf;

use raymond_core::agent::SessionPlan;
use raymond_core::ids::{Nonce, SessionId, StateName, TurnId};
use raymond_core::run::turn_spec::Extras;

use super::*;
use crate::contract::StartedTurn;

fn request() -> PromptRequest {
    PromptRequest {
        started: StartedTurn {
            nonce: Nonce::new("n"),
            turn: "main.1.1".parse::<TurnId>().unwrap(),
            attempt: 1,
            plan: SessionPlan::Carry,
            transcript: PathBuf::new(),
            timeout: None,
            idle_timeout: None,
            cap: None,
            config_home: None,
        },
        location: StateName::new("START.md").into(),
        count: 1,
        prompt: "never an argument".into(),
        notice: None,
        cwd: PathBuf::new(),
        model: None,
        effort: None,
        permissions: Permissions::default(),
        extras: Extras::default(),
        schema: None,
        environment: None,
    }
}

fn open() -> SessionStep {
    SessionStep::Open(SessionId::new("S"))
}

fn list(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// Checks the arguments after the flags that are always there.
fn check(request: &PromptRequest, step: &SessionStep, expected: &[&str]) {
    let found = arguments(request, step);
    let (always, rest) = found.split_at(4);
    assert_eq!(always, ["-p", "--output-format", "stream-json", "--verbose"]);
    assert_eq!(rest, expected);
}

#[test]
fn each_step_gets_its_conversation() {
    let (from, to) = (SessionId::new("FROM"), SessionId::new("TO"));
    let mode = ["--permission-mode=acceptEdits"];
    let check = |step: SessionStep, session: &[&str]| {
        check(&request(), &step, &[session, &mode].concat());
    };
    check(open(), &["--session-id=S"]);
    check(SessionStep::Resume(to.clone()), &["--resume=TO"]);
    let branch = ["--resume=FROM", "--fork-session", "--session-id=TO"];
    check(SessionStep::Branch { from, to }, &branch);
}

#[test]
fn permissions_are_flags_and_lists_swallow_nothing() {
    let check = |permissions: Permissions, expected: &[&str]| {
        let request = PromptRequest { permissions, ..request() };
        check(&request, &open(), &[&["--session-id=S"], expected].concat());
    };
    let base = Permissions::default;
    let plan = Permissions { mode: Some("plan".into()), ..base() };
    check(plan, &["--permission-mode=plan"]);
    let skipped = Permissions { checks: Checks::Skipped, mode: Some("plan".into()), ..base() };
    check(skipped, &["--dangerously-skip-permissions"]);
    let lists = Permissions {
        allow: list(&["Bash(git commit -m \"a, b\":*)", "Read"]),
        deny: list(&["WebFetch"]),
        ..base()
    };
    check(
        lists,
        &[
            "--permission-mode=acceptEdits",
            "--allowedTools=Bash(git commit -m \"a, b\":*)",
            "--allowedTools=Read",
            "--disallowedTools=WebFetch",
        ],
    );
}

#[test]
fn every_option_of_a_state_is_a_flag() {
    let all = PromptRequest {
        model: Some("opus".into()),
        effort: Some("high".into()),
        started: StartedTurn { cap: Some(Micros(1_250_000)), ..request().started },
        extras: Extras {
            add_dirs: list(&["../lib", "/data"]),
            mcp_config: Some(r#"{"mcpServers":{}}"#.into()),
            append_system_prompt: Some("- be brief".into()),
        },
        ..request()
    };
    let common = [
        "--permission-mode=acceptEdits",
        "--model=opus",
        "--effort=high",
        "--max-budget-usd=1.250000",
        "--add-dir=../lib",
        "--add-dir=/data",
        r#"--mcp-config={"mcpServers":{}}"#,
        "--append-system-prompt=- be brief",
    ];
    check(&all, &open(), &[&["--session-id=S"], &common[..]].concat());
    // A session keeps its system prompt otherwise.
    let off = ["--system-prompt-snapshot", "off"];
    let resume = SessionStep::Resume(SessionId::new("S"));
    check(&all, &resume, &[&["--resume=S"], &common[..], &off].concat());
}

// proves: S26
#[test]
fn no_value_can_be_taken_for_a_flag() {
    const FLAG: &str = "--dangerously-skip-permissions";
    let hostile = || FLAG.to_owned();
    let request = PromptRequest {
        model: Some(hostile()),
        effort: Some(hostile()),
        schema: Some(FLAG.into()),
        permissions: Permissions {
            mode: Some(hostile()),
            allow: vec![hostile()],
            deny: vec![hostile()],
            ..Permissions::default()
        },
        extras: Extras {
            add_dirs: vec![hostile()],
            mcp_config: Some(hostile()),
            append_system_prompt: Some(hostile()),
        },
        ..request()
    };
    let id = || SessionId::new(FLAG);
    for step in [
        SessionStep::Open(id()),
        SessionStep::Resume(id()),
        SessionStep::Branch { from: id(), to: id() },
    ] {
        let list = arguments(&request, &step);
        assert!(list.iter().all(|word| word != FLAG), "{list:?}");
    }
}

#[test]
fn cap_is_a_positive_amount_in_dollars() {
    let check = |cap: u64, expected: &str| assert_eq!(dollars(Micros(cap)), expected);
    check(0, "0.000001");
    check(50_000, "0.050000");
    check(10_000_000, "10.000000");
    check(12_345_678, "12.345678");
}

#[test]
fn retries_are_limited_unless_the_user_sets_them() {
    let check = |request: &PromptRequest, inherited: &[&str], expected: &[(&str, &str)]| {
        let found = environment(request, |name| inherited.contains(&name));
        let expected: Vec<(OsString, OsString)> =
            expected.iter().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(found, expected);
    };
    let retries = ("CLAUDE_CODE_MAX_RETRIES", "2");
    check(&request(), &[], &[retries]);
    check(&request(), &["CLAUDE_CODE_MAX_RETRIES"], &[]);
    let listed = PromptRequest { environment: Some(list(&["PATH"])), ..request() };
    check(&listed, &["CLAUDE_CODE_MAX_RETRIES"], &[retries]);
    let named =
        PromptRequest { environment: Some(list(&["CLAUDE_CODE_MAX_RETRIES"])), ..request() };
    check(&named, &["CLAUDE_CODE_MAX_RETRIES"], &[]);
    let config_home = Some("/run/home".into());
    let home =
        PromptRequest { started: StartedTurn { config_home, ..request().started }, ..request() };
    check(&home, &[], &[retries, ("CLAUDE_CONFIG_DIR", "/run/home")]);
}
