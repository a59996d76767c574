use raymond_core::agent::SessionPlan;
use raymond_core::budget::Micros;
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
            transcript: "/t".into(),
            timeout: None,
            idle_timeout: None,
            cap: Some(Micros(1)),
            config_home: None,
        },
        location: StateName::new("START.md").into(),
        count: 1,
        prompt: "never here".into(),
        notice: None,
        cwd: "/w".into(),
        model: None,
        effort: None,
        permissions: Permissions::default(),
        extras: Extras::default(),
        schema: None,
        environment: None,
    }
}

#[track_caller]
fn check(request: &PromptRequest, step: &SessionStep, schema: Option<&Path>, expected: &str) {
    let list = arguments(request, step, schema);
    let list: Vec<&str> = list.iter().map(|word| word.to_str().unwrap()).collect();
    let usual = "exec --json --color never --skip-git-repo-check -c features.goals=false --cd=/w ";
    assert_eq!(list.join(" "), format!("{usual}{expected}"));
}

fn open() -> SessionStep {
    SessionStep::Open(SessionId::new("s"))
}

#[test]
fn plan_is_subcommand_and_prompt_is_stdin() {
    let kept = "--sandbox workspace-write -c approval_policy=\"never\"";
    let resume = SessionStep::Resume(SessionId::new("s"));
    let branch = SessionStep::Branch { from: SessionId::new("s"), to: SessionId::new("t") };
    check(&request(), &open(), None, &format!("{kept} -"));
    check(&request(), &resume, None, &format!("{kept} resume -- s -"));
    check(&request(), &branch, None, &format!("{kept} fork -- s -"));
}

#[test]
fn permissions_are_a_sandbox() {
    let plan = Permissions { mode: Some("plan".into()), ..Permissions::default() };
    let skipped = Permissions { checks: Checks::Skipped, ..Permissions::default() };
    let check = |permissions, expected: &str| {
        check(&PromptRequest { permissions, ..request() }, &open(), None, expected);
    };
    check(plan, "--sandbox read-only -c approval_policy=\"never\" -");
    check(skipped, "--dangerously-bypass-approvals-and-sandbox -");
}

#[test]
fn options_of_a_state_precede_the_subcommand() {
    let all = PromptRequest {
        model: Some("gpt-5.5".into()),
        effort: Some("high".into()),
        extras: Extras {
            add_dirs: vec!["../lib".into(), "/data".into()],
            mcp_config: None,
            append_system_prompt: Some("be \"brief\"\n€".into()),
        },
        permissions: Permissions { checks: Checks::Skipped, ..Permissions::default() },
        ..request()
    };
    let expected = "--dangerously-bypass-approvals-and-sandbox --add-dir=../lib --add-dir=/data \
                    --model=gpt-5.5 -c model_reasoning_effort=\"high\" \
                    -c developer_instructions=\"be \\\"brief\\\"\\n€\" --output-schema=/s.json -";
    check(&all, &open(), Some(Path::new("/s.json")), expected);
}

// proves: S26
#[test]
fn no_value_can_be_taken_for_a_flag() {
    const FLAG: &str = "--dangerously-bypass-approvals-and-sandbox";
    let hostile = || FLAG.to_owned();
    let request = PromptRequest {
        cwd: FLAG.into(),
        model: Some(hostile()),
        effort: Some(hostile()),
        permissions: Permissions { mode: Some(hostile()), ..Permissions::default() },
        extras: Extras {
            add_dirs: vec![hostile()],
            mcp_config: None,
            append_system_prompt: Some(hostile()),
        },
        ..request()
    };
    let resume = SessionStep::Resume(SessionId::new(FLAG));
    let branch = SessionStep::Branch { from: SessionId::new(FLAG), to: SessionId::new("t") };
    for step in [open(), resume, branch] {
        let list = arguments(&request, &step, Some(Path::new(FLAG)));
        let mut flags = list.iter().take_while(|word| *word != "--");
        assert!(flags.all(|word| word != FLAG), "{list:?}");
    }
}

#[test]
fn a_configured_text_is_one_string_of_toml() {
    let check = |text: &str, expected: &str| {
        let mut list = ArgumentList::default();
        configured(&mut list, "developer_instructions", text);
        let word = format!("developer_instructions={expected}");
        assert_eq!(list.finish(), [OsString::from("-c"), word.into()]);
    };
    check("brief", r#""brief""#);
    check("a\"\nsandbox_mode=\"danger-full-access", r#""a\"\nsandbox_mode=\"danger-full-access""#);
    check("c:\\new\t#", r#""c:\\new\t#""#);
    check("\u{1b}\u{7f}\u{0}", r#""\u001b\u007f\u0000""#);
}

#[test]
fn only_a_uuid_is_looked_for() {
    let check = |id: &str, expected: bool| assert_eq!(is_uuid(id), expected, "{id}");
    check("01a1df23-a6a0-7e62-ac75-9fbb433c5c8e", true);
    check("00000000-0000-8000-8000-000000000000", true);
    check("01a1df23a6a07e62ac759fbb433c5c8e", false);
    check("01a1df23-a6a0-7e62-ac75-9fbb433c5c8g", false);
    check("my-thread", false);
    check("", false);
}
