use proptest::prelude::*;
use raymond_core::ids::SessionId;
use raymond_core::prices::Prices;

use super::super::outcome;
use super::super::sample::{self, bash, init, success, system, text, user};
use super::*;
use crate::contract::ClientProgress;
use crate::headless::warnings::Warnings;
use crate::headless::{ClientEnd, SessionStep};
use crate::process::StreamEvent;

fn event(line: &str) -> StreamEvent {
    StreamEvent::Line(line.as_bytes().to_vec())
}

fn after(lines: &[String]) -> ClaudeTurn {
    let mut turn = ClaudeTurn::default();
    for line in lines {
        turn.read_event(&event(line));
    }
    turn
}

fn warnings(lines: &[String]) -> Vec<String> {
    after(lines).health.warnings.into_vec().iter().map(ToString::to_string).collect()
}

#[test]
fn every_line_gives_its_items() {
    let check = |line: &str, expected: &[ClientProgress]| {
        let said = ClaudeTurn::default().read_event(&event(line));
        let signs: Vec<ClientProgress> = said.iter().filter_map(TranscriptItem::progress).collect();
        assert_eq!(signs, expected, "{line}");
    };
    check(&init(), &[]);
    check(&text("m", "hello"), &[ClientProgress::Text]);
    check(&bash("m", "cargo test"), &[ClientProgress::Tool { name: "Bash(cargo test)".into() }]);
    let two = r#"{"type":"text","text":"a"},{"type":"tool_use","name":"Read","input":{"file_path":"/x"}}"#;
    check(
        &sample::block("m", two),
        &[ClientProgress::Text, ClientProgress::Tool { name: "Read(/x)".into() }],
    );
    let why = "overloaded (529), retry 1 of 2".to_owned();
    check(&sample::retry("529", "overloaded"), &[ClientProgress::Retries { why }]);
    check(&sample::error("server_error"), &[]);
    check(&user(), &[]);
    check(&success("x"), &[]);
}

#[test]
fn last_message_is_joined_from_its_lines() {
    let check = |lines: &[String], expected: Option<&str>| {
        let ended = after(lines).result.expect("a result");
        assert_eq!(ended.message.as_deref(), expected, "{lines:?}");
    };
    let done = || success("x");
    check(&[init(), done()], None);
    check(&[text("m1", "one "), text("m1", "two"), done()], Some("one two"));
    check(&[text("m1", "one"), text("m2", "two"), done()], Some("two"));
    check(&[text("m1", "one"), bash("m1", "ls"), done()], None);
    check(&[text("m1", "one"), bash("m1", "ls"), user(), text("m2", "two"), done()], Some("two"));
    // Text of a subagent or of the client itself is not the model's answer.
    let subagent =
        text("s1", "sub").replace(r#""parent_tool_use_id":null"#, r#""parent_tool_use_id":"t""#);
    check(&[text("m1", "one"), subagent, done()], Some("one"));
    check(&[text("m1", "one"), sample::error("server_error"), done()], Some("one"));
    // A message belongs to its round.
    check(&[text("m1", "one"), done(), init(), done()], None);
}

#[test]
fn last_result_counts_unless_interrupted() {
    let check = |lines: &[String], expected: Option<&str>| {
        let result = after(lines).result.map(|ended| ended.conclusion.subtype);
        assert_eq!(result.as_deref(), expected, "{lines:?}");
    };
    let cut = "error_during_execution";
    check(&[init()], None);
    check(&[success("x"), sample::capped()], Some("error_max_budget_usd"));
    check(&[success("x"), init()], Some("success"));
    check(&[success("x"), init(), sample::interrupted()], Some("success"));
    check(&[sample::lost("s")], Some(cut));
    check(&[sample::lost("s"), sample::interrupted()], Some(cut));
    // The next client is not the client that found no session.
    check(&[sample::lost("s"), init()], None);
    check(&[sample::lost("s"), init(), success("x")], Some("success"));
}

#[test]
fn turn_is_done_after_result_without_tasks() {
    let check = |lines: &[String], expected: Stage| {
        assert_eq!(after(lines).stage(), expected, "{lines:?}");
    };
    let done = || success("x");
    let started = |background: &str| {
        let more = format!(r#""task_id":"b1","description":"x"{background}"#);
        system("task_started", &more)
    };
    let background = || started(r#","is_backgrounded":true"#);
    let updated =
        |patch: &str| system("task_updated", &format!(r#""task_id":"b1","patch":{{{patch}}}"#));
    let changed =
        |tasks: &str| system("background_tasks_changed", &format!(r#""tasks":[{tasks}]"#));
    check(&[], Stage::Working);
    check(&[init(), text("m", "x")], Stage::Working);
    check(&[background()], Stage::Working);
    check(&[init(), done()], Stage::Done);
    check(&[done(), init()], Stage::Working);
    check(&[done(), init(), done()], Stage::Done);
    check(&[background(), done()], Stage::Background);
    check(&[started(""), done()], Stage::Background);
    check(&[started(r#","is_backgrounded":false"#), done()], Stage::Done);
    check(
        &[started(r#","is_backgrounded":false"#), updated(r#""is_backgrounded":true"#), done()],
        Stage::Background,
    );
    for status in ["completed", "failed", "killed"] {
        let status = format!(r#""status":"{status}""#);
        check(&[background(), done(), updated(&status)], Stage::Done);
    }
    check(&[background(), done(), updated(r#""status":"running""#)], Stage::Background);
    let notified = system("task_notification", r#""task_id":"b1","status":"completed""#);
    check(&[background(), done(), notified], Stage::Done);
    check(&[background(), done(), changed("")], Stage::Done);
    check(&[done(), changed(r#"{"task_id":"b2"}"#)], Stage::Background);
    check(&[done(), changed(r#"{"task_id":"b2","ambient":true}"#)], Stage::Done);
}

#[test]
fn missing_login_is_known_at_first_retry() {
    let check = |status: &str, error: &str, expected: Option<&str>| {
        let turn = after(&[init(), sample::retry(status, error)]);
        assert_eq!(turn.login(), expected, "{status} {error}");
    };
    check("401", "authentication_failed", Some("authentication_failed (401)"));
    check("null", "authentication_failed", Some("authentication_failed"));
    check("403", "unknown", Some("unknown (403)"));
    check("529", "overloaded", None);
    check("429", "rate_limit", None);
    check("null", "unknown", None);
}

#[test]
fn denied_calls_are_the_union_over_all_results() {
    let denied = |calls: &[(&str, &str)]| {
        let calls: Vec<String> = calls
            .iter()
            .map(|(id, command)| {
                let input = format!(r#"{{"command":"{command}"}}"#);
                format!(r#"{{"tool_name":"Bash","tool_use_id":"{id}","tool_input":{input}}}"#)
            })
            .collect();
        let more = format!(r#""result":"x","permission_denials":[{}]"#, calls.join(","));
        sample::result("success", &more)
    };
    let check = |lines: &[String], expected: &[&str]| {
        let turn = after(lines);
        let found: Vec<_> =
            turn.denied.iter().map(|d| tools::permission_rule(&d.tool, &d.input)).collect();
        assert_eq!(found, expected);
    };
    check(&[success("x")], &[]);
    check(&[denied(&[("t1", "a"), ("t2", "a")])], &["Bash(a)", "Bash(a)"]);
    let twice = [denied(&[("t1", "a")]), denied(&[("t1", "a"), ("t2", "b")])];
    check(&twice, &["Bash(a)", "Bash(b)"]);
    let nameless =
        || sample::result("success", r#""permission_denials":[{"tool_name":"WebFetch"}]"#);
    check(&[nameless(), nameless()], &["WebFetch", "WebFetch"]);
    check(&[sample::result("success", r#""permission_denials":[{},[],{"tool_name":7}]"#)], &[]);
}

// proves: S33
#[test]
fn session_is_kept_only_if_id_is_safe() {
    let check = |id: &str, expected: Option<&str>| {
        let lines = [system("init", &format!(r#""session_id":"{id}""#))];
        let turn = after(&lines);
        assert_eq!(turn.session.as_ref().map(SessionId::as_str), expected, "{id}");
        let warned = turn.health.warnings.into_vec().len();
        assert_eq!(warned, usize::from(expected.is_none()), "{id}");
        let told = success("x").replace(sample::SESSION, id);
        let named = after(&[init(), told]).session;
        assert_eq!(named, Some(SessionId::new(expected.unwrap_or(sample::SESSION))));
    };
    check("another-1", Some("another-1"));
    check("", None);
    check("--dangerously-skip-permissions", None);
    for odd in [r"a\u0000b", r"a\nb", r"\u001b[2J", "a b", "\u{e4}"] {
        check(odd, None);
    }
    check(&"x".repeat(200), Some(&"x".repeat(200)));
    check(&"x".repeat(201), None);
}

#[test]
fn recorded_names_are_shortened() {
    let long = "\u{e4}".repeat(5000);
    let line = text("m", "x").replace("claude-opus-5-5", &long);
    assert_eq!(after(&[init(), line]).model, Some("\u{e4}".repeat(100) + "…"));
    let server = format!(r#""mcp_servers":[{{"name":"{long}","status":"failed"}}]"#);
    let told = warnings(&[system("init", &server)]);
    assert!(told[0].ends_with('…') && told[0].len() <= 503, "{told:?}");
    let denied = format!(r#""permission_denials":[{{"tool_name":"{long}"}}]"#);
    let turn = after(&[sample::result("success", &denied)]);
    assert_eq!(tools::permission_rule(&turn.denied[0].tool, &turn.denied[0].input).len(), 2000);
}

#[test]
fn no_number_of_denied_calls_is_too_large() {
    let call = |id: usize| format!(r#"{{"tool_name":"Bash","tool_use_id":"{id}"}}"#);
    let calls: Vec<String> = (0..100_000).map(call).collect();
    let more = format!(r#""permission_denials":[{}]"#, calls.join(","));
    let turn = after(&[sample::result("success", &more)]);
    assert_eq!(turn.denied.len(), 1000);
    let warned: Vec<_> = turn.health.warnings.into_vec().iter().map(ToString::to_string).collect();
    assert_eq!(warned, ["more than 1000 calls were denied; the rest is not listed"]);
}

#[test]
fn a_usage_limit_counts_when_it_is_reached() {
    let event = |status: &str, reset: &str| {
        format!(r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}"{reset}}}}}"#)
    };
    let check = |lines: &[String], expected: Option<u64>| {
        assert_eq!(after(lines).limited_until, expected.map(Timestamp));
    };
    let reset = r#","resetsAt":1900000000"#;
    check(&[event("rejected", reset)], Some(1_900_000_000_000));
    check(&[event("rejected", "")], None);
    check(&[event("allowed_warning", reset)], None);
    check(&[event("rejected", reset), event("allowed", reset)], None);
}

#[test]
fn each_unknown_type_warns_once() {
    let check = |lines: &[String], expected: &[&str]| assert_eq!(warnings(lines), expected);
    let novelty = |kind: &str| format!(r#"{{"type":"{kind}"}}"#);
    check(&[init(), text("m", "x"), success("x")], &[]);
    check(
        &[novelty("a"), novelty("a"), novelty("b"), "oops".into(), "again".into()],
        &[
            "the client wrote a line of unknown type \"a\"; it was ignored",
            "the client wrote a line of unknown type \"b\"; it was ignored",
            "the client wrote a line that is not JSON; it was ignored",
        ],
    );
    let servers = r#""mcp_servers":[{"name":"a","status":"failed"},{"name":"b","status":"connected"},{"name":"c","status":"needs-auth"}]"#;
    let init = system("init", servers);
    let expected = [
        "the MCP server a is not available: failed",
        "the MCP server c is not available: needs-auth",
    ];
    check(&[init.clone(), init], &expected);
    let mut turn = ClaudeTurn::default();
    turn.read_event(&StreamEvent::Line(b"{\"type\":\"user\",\"x\":\"\xff\"}".to_vec()));
    turn.read_event(&StreamEvent::LongLine { length: 50_000_000 });
    let found: Vec<_> = turn.health.warnings.into_vec().iter().map(ToString::to_string).collect();
    let long = "a line of 50000000 bytes was too long to read";
    assert_eq!(found, ["the output was not UTF-8; bad bytes were replaced", long]);
    let many: Vec<String> = (0..100).map(|n| novelty(&n.to_string())).collect();
    assert_eq!(warnings(&many).len(), Warnings::MAX);
}

#[test]
fn unread_line_may_be_result_until_next_line() {
    let check = |lines: &[String], expected: bool| {
        let mut turn = ClaudeTurn::default();
        turn.read_event(&StreamEvent::LongLine { length: 50_000_000 });
        for line in lines {
            turn.read_event(&event(line));
        }
        assert_eq!(turn.health.unread, expected, "{lines:?}");
    };
    check(&[], true);
    check(&[system("task_notification", r#""task_id":"b1""#)], true);
    check(&[user()], false);
    check(&[text("m", "x")], false);
    check(&[init()], false);
    check(&[success("x")], false);
}

const WORDS: &str = "assistant system result init api_retry success text tool_use x rate_limit_event \
    task_updated error_max_budget_usd rejected €";
const KEYS: &str = "type subtype message content id model usage input text tasks task_id patch status error \
    errors result is_error resetsAt rate_limit_info permission_denials \
    model_usage_since_last_result costUSD input_tokens mcp_servers name";

/// JSON of any shape under the names of stream fields.
fn json() -> impl Strategy<Value = String> {
    let word = prop::sample::select(WORDS.split(' ').collect::<Vec<_>>());
    let leaf = prop_oneof![
        word.prop_map(|word| format!("{word:?}")),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<bool>().prop_map(|truth| truth.to_string()),
        Just("null".to_owned()),
        Just("1e308".to_owned()),
    ];
    let key = prop::sample::select(KEYS.split(' ').collect::<Vec<_>>());
    leaf.prop_recursive(5, 40, 8, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4);
        let map = prop::collection::btree_map(key.clone(), inner, 0..8);
        prop_oneof![
            list.prop_map(|items| format!("[{}]", items.join(","))),
            map.prop_map(|map| {
                let fields = map.iter().map(|(key, value)| format!("{key:?}:{value}"));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_lines_can_be_read(lines in prop::collection::vec(json(), 0..12)) {
        let turn = after(&lines);
        turn.stage();
        let step = SessionStep::Resume(SessionId::new("s"));
        outcome::answer(turn, ClientEnd::Settled, &step, &Prices::default());
    }

    // proves: S32
    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        ClaudeTurn::default().read_event(&StreamEvent::Line(bytes));
    }
}
