use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::Clock;
use raymond_core::ids::SessionId;
use raymond_core::run::warning::Warning;
use raymond_core::time::{Span, Timestamp};

use super::super::sample::{self, SESSION, bash, init, success, text};
use super::*;
use crate::process::StreamEvent;

const MODEL: &str = "claude-opus-5-5";
const REPORTED: Cost = Cost::Reported(Micros(2800));
const FREE: Cost = Cost::Reported(Micros::ZERO);

fn exited() -> ClientEnd {
    ClientEnd::Exited { status: Some(ExitStatus::from_raw(1 << 8)), stderr: String::new() }
}

fn open() -> SessionStep {
    SessionStep::Open(SessionId::new(SESSION))
}

fn after(lines: &[String], end: ClientEnd, step: &SessionStep) -> Answer {
    let mut turn = ClaudeTurn::default();
    for line in lines {
        turn.read_event(&StreamEvent::Line(line.clone().into_bytes()));
    }
    answer(turn, end, step, &Prices::default())
}

fn finished(text: &str, structured: Option<serde_json::Value>) -> Answer {
    let reply = Finished { reply: Reply { text: text.to_owned(), structured }, ..reply(text) };
    Answer::Finished(Box::new(reply))
}

fn reply(text: &str) -> Finished<Reply> {
    Finished { model: Some(MODEL.into()), ..Finished::new(Reply::new(text), REPORTED) }
}

fn replied(text: &str) -> Answer {
    Answer::Finished(Box::new(reply(text)))
}

fn failed(failure: TurnFailure, cost: Cost) -> Answer {
    Answer::Failed { failure, cost, denied: Vec::new(), session: None }
}

fn transient(why: &str) -> TurnFailure {
    TurnFailure::Transient { why: why.into() }
}

fn task(why: &str) -> TurnFailure {
    TurnFailure::Task { why: why.into() }
}

fn auth(said: &str) -> TurnFailure {
    let why = format!("run `claude /login` or set ANTHROPIC_API_KEY; the client says: {said}");
    TurnFailure::Auth { why }
}

#[test]
fn a_success_is_the_whole_final_message() {
    let check = |lines: &[String], expected: &str| {
        assert_eq!(after(lines, exited(), &open()), replied(expected), "{lines:?}");
    };
    check(&[init(), text("m", "done"), success("done")], "done");
    // The result contains only the last block.
    check(&[init(), text("m", "one "), text("m", "two"), success("two")], "one two");
    check(&[init(), bash("m1", "ls"), text("m2", "done"), success("done")], "done");
    // The output of a local command comes from no message.
    check(&[init(), text("m", "said"), success("other")], "other");
    check(&[init(), bash("m1", "ls"), success("")], "");
    let silent = sample::result("success", &format!(r#""is_error":false,{}"#, sample::USAGE));
    check(&[init(), bash("m1", "ls"), silent], "");
}

#[test]
fn reply_contains_all_client_fields() {
    let result = sample::result(
        "success",
        &format!(
            r#""result":"x","permission_denials":[{{"tool_name":"Bash","tool_use_id":"t","tool_input":{{"command":"cargo test --all"}}}}],{}"#,
            sample::USAGE
        ),
    );
    let lines = [init(), "oops".to_owned(), result];
    let expected = Finished {
        denied: vec!["Bash(cargo test --all)".into()],
        warnings: vec![Warning::Other {
            message: "the client wrote a line that is not JSON; it was ignored".into(),
        }],
        ..reply("x")
    };
    assert_eq!(after(&lines, exited(), &open()), Answer::Finished(Box::new(expected)));
}

// proves: S33
#[test]
fn wrong_session_fails_the_turn() {
    let ends = || {
        let after = Span::seconds(1);
        [
            exited(),
            ClientEnd::Settled,
            ClientEnd::Cancelled,
            ClientEnd::TimedOut { clock: Clock::Idle, after },
        ]
    };
    let check = |step: &SessionStep, why: &str| {
        for (lines, cost) in [(vec![init(), success("x")], REPORTED), (vec![init()], Cost::Unknown)]
        {
            for end in ends() {
                assert_eq!(after(&lines, end, step), failed(task(why), cost), "{lines:?}");
            }
        }
        // Only the result reports it.
        let lines = [init().replace(SESSION, step.written_session().as_str()), success("x")];
        assert_eq!(after(&lines, exited(), step), failed(task(why), REPORTED));
    };
    let (own, another) = (SessionId::new(SESSION), SessionId::new("another"));
    let wrong_session_failure =
        format!("the client should have written session another but reports session {SESSION}");
    check(&SessionStep::Open(another.clone()), &wrong_session_failure);
    check(&SessionStep::Resume(another.clone()), &wrong_session_failure);
    let from = SessionId::new("from");
    check(&SessionStep::Branch { from, to: another.clone() }, &wrong_session_failure);
    let stayed = format!("the client should have branched session {SESSION} but continued it");
    check(&SessionStep::Branch { from: own, to: another }, &stayed);
}

#[test]
fn errors_of_the_api_have_their_kinds() {
    let check = |lines: &[String], expected: TurnFailure| {
        assert_eq!(after(lines, exited(), &open()), failed(expected, FREE), "{lines:?}");
    };
    let said = "API Error: scripted";
    let by_status = |status: &str| [init(), sample::api_error(status)];
    let by_kind = |kind: &str| [init(), sample::error(kind), sample::api_error("null")];
    for status in ["401", "403"] {
        check(&by_status(status), auth(said));
    }
    for kind in ["authentication_failed", "billing_error"] {
        check(&by_kind(kind), auth(said));
    }
    let quota = |until| TurnFailure::Quota { until, why: said.into() };
    check(&by_status("429"), quota(None));
    check(&by_kind("rate_limit"), quota(None));
    let event = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1900000000}}"#;
    let limited = [init(), event.to_owned(), sample::api_error("429")];
    check(&limited, quota(Some(Timestamp(1_900_000_000_000))));
    for status in ["500", "503", "529", "null"] {
        check(&by_status(status), transient(said));
    }
    for kind in ["server_error", "overloaded", "unknown"] {
        check(&by_kind(kind), transient(said));
    }
    for status in ["400", "404", "413"] {
        check(&by_status(status), task(said));
    }
    for kind in ["model_not_found", "invalid_request"] {
        check(&by_kind(kind), task(said));
    }
    // An error from which the client recovered does not belong to the result.
    let nothing = r#""model_usage_since_last_result":{"claude-opus-5-5":{"costUSD":0}}"#;
    let last = sample::api_error("null").replace(sample::NO_USAGE, nothing);
    check(&[init(), sample::error("invalid_request"), text("m", "x"), last], transient(said));
}

/// The message with which the client reports a limit, at noon of 2030-01-01.
fn limit(more: &str) -> String {
    sample::error("rate_limit").replacen(
        '{',
        &format!(r#"{{"timestamp":"2030-01-01T12:00:00.000Z"{more},"#),
        1,
    )
}

#[test]
fn a_limit_is_lifted_when_the_server_says() {
    const NOON: u64 = 1_893_499_200_000;
    let check = |lines: &[String], until: Option<u64>| {
        let lines = [&[init()], lines, &[sample::api_error("429")]].concat();
        let until = until.map(Timestamp);
        let quota = TurnFailure::Quota { until, why: "API Error: scripted".into() };
        assert_eq!(after(&lines, exited(), &open()), failed(quota, FREE), "{lines:?}");
    };
    let event = |status: &str| {
        format!(
            r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}","resetsAt":1900000000}}}}"#
        )
    };
    let reached = r#","api_error":"usage_limit_reached","api_error_params":{"rate_limit_info":{"status":"rejected","resetsAt":1900000001}}"#;
    check(&[limit("")], None);
    check(&[event("rejected"), limit("")], Some(1_900_000_000_000));
    // The answer to the request itself comes first, and no later event changes it.
    check(&[event("rejected"), limit(reached)], Some(1_900_000_001_000));
    check(&[limit(reached), event("allowed")], Some(1_900_000_001_000));
    // The client waited for the delay of the server twice, and was too early again.
    let retry = |attempt: u64, delay: u64| {
        let told = format!(r#""attempt":{attempt},"max_retries":2,"retry_delay_ms":{delay}"#);
        sample::system("api_retry", &format!(r#"{told},"error_status":429,"error":"rate_limit""#))
    };
    check(&[retry(1, 20_000), retry(2, 30_000), limit("")], Some(NOON + 30_000));
    check(&[retry(1, 1000), retry(2, 1000), limit("")], Some(NOON + 1000));
    check(&[retry(1, 20_000), limit(reached)], Some(1_900_000_001_000));
    // These delays are the client's own.
    check(&[retry(1, 500), retry(2, 1249), limit("")], None);
    check(&[retry(1, 625), retry(6, 20_000), retry(40, 40_000), limit("")], None);
    // The time of the message is unknown.
    check(&[retry(1, 20_000), sample::error("rate_limit")], None);
}

#[test]
fn limit_that_needs_payment_is_auth_failure() {
    let lines = [
        init(),
        limit(r#","api_error":"long_context_credits_required""#),
        sample::api_error("429"),
    ];
    let person = failed(auth("API Error: scripted"), FREE);
    assert_eq!(after(&lines, exited(), &open()), person);
}

#[test]
fn a_refusal_is_final() {
    let refusal = |explanation: &str| {
        sample::system(
            "model_refusal_no_fallback",
            &format!(r#""api_refusal_explanation":{explanation}"#),
        )
    };
    let check = |explanation: &str, why: &str| {
        let lines = [
            init(),
            refusal(explanation),
            sample::error("server_error"),
            sample::api_error("null"),
        ];
        assert_eq!(after(&lines, exited(), &open()), failed(task(why), FREE));
    };
    check("null", "the model refused: API Error: scripted");
    check("\"it is about\\nlocks\"", "the model refused: it is about / locks");
}

#[test]
fn reached_cap_keeps_a_finished_answer() {
    let check = |lines: &[String], expected: Answer| {
        assert_eq!(after(lines, exited(), &open()), expected, "{lines:?}");
    };
    let capped = |progressed| Answer::Capped {
        cost: REPORTED,
        progressed,
        denied: Vec::new(),
        session: None,
    };
    let end = sample::capped;
    let mut answer = replied("part one. final");
    if let Answer::Finished(reply) = &mut answer {
        reply.capped = true;
    }
    check(&[init(), text("m", "part one. "), text("m", "final"), end()], answer);
    check(&[init(), text("m", "let me look"), bash("m", "ls"), end()], capped(true));
    check(&[init(), text("m1", "a"), bash("m1", "ls"), sample::user(), end()], capped(true));
    check(&[init(), text("m", ""), end()], capped(true));
    check(&[init(), end()], capped(false));
}

#[test]
fn other_ends_of_the_client_have_their_kinds() {
    let check = |subtype: &str, errors: &str, expected: TurnFailure| {
        let tools = r#""terminal_reason":"aborted_tools""#;
        let more = format!(r#""is_error":true,"errors":[{errors}],{tools},{}"#, sample::USAGE);
        let lines = [init(), sample::result(subtype, &more)];
        assert_eq!(after(&lines, exited(), &open()), failed(expected, REPORTED));
    };
    let turns = "the client stopped at its own limit of turns";
    check("error_max_turns", "\"Reached maximum number of turns (3)\"", transient(turns));
    let cut = "the client was interrupted: a; b";
    check("error_during_execution", r#""a","b""#, transient(cut));
    let silent = "the client was interrupted: no reason given";
    check("error_during_execution", "", transient(silent));
    check("error_new", "", task("no reason given"));
}

#[test]
fn structured_output_exists_only_if_schema_was_followed() {
    let check = |lines: &[String], text: &str, structured: Option<serde_json::Value>| {
        let expected = finished(text, structured);
        assert_eq!(after(lines, exited(), &open()), expected);
    };
    let result =
        |subtype: &str, more: &str| sample::result(subtype, &format!("{more},{}", sample::USAGE));
    let told = r#""is_error":false,"result":"done","structured_output":{"grade":3}"#;
    let complied = [init(), text("m", "done"), result("success", told)];
    check(&complied, "done", Some(serde_json::json!({ "grade": 3 })));
    check(&[init(), text("m", "in words"), success("in words")], "in words", None);
    let given_up = |words: &str| {
        let more = format!(r#""is_error":true,"errors":["{words}"]"#);
        result("error_max_structured_output_retries", &more)
    };
    check(&[init(), bash("m", "ls"), given_up("five attempts")], "five attempts", None);
    check(&[init(), text("m", "in words"), given_up("five attempts")], "in words", None);
}

#[test]
fn session_is_lost_only_if_required() {
    let (from, to) = (SessionId::new("from"), SessionId::new(SESSION));
    let check = |step: &SessionStep, expected: TurnFailure| {
        let lines = [sample::lost("from")];
        assert_eq!(after(&lines, exited(), step), failed(expected, FREE));
    };
    let lost = TurnFailure::LostSession { session: from.clone() };
    check(&SessionStep::Resume(from.clone()), lost.clone());
    check(&SessionStep::Branch { from, to }, lost);
    let said = "the client was interrupted: No conversation found with session ID: from";
    check(&open(), transient(said));
}

#[test]
fn a_client_without_a_result_died() {
    let check = |end: ClientEnd, lines: &[String], why: &str, cost: Cost| {
        assert_eq!(after(lines, end, &open()), failed(transient(why), cost));
    };
    let death_message = "the client died without a result";
    let stderr = "error: unknown option '--x'\n\nsee --help".to_owned();
    let bad_flag = ClientEnd::Exited { status: Some(ExitStatus::from_raw(1 << 8)), stderr };
    let why =
        format!("{death_message}, with exit status 1: error: unknown option '--x' / see --help");
    check(bad_flag, &[], &why, FREE);
    let killed =
        || ClientEnd::Exited { status: Some(ExitStatus::from_raw(9)), stderr: String::new() };
    let why = format!("{death_message}, with signal 9 (SIGKILL)");
    check(killed(), &[init()], &why, Cost::Unknown);
    let terminated =
        ClientEnd::Exited { status: Some(ExitStatus::from_raw(143 << 8)), stderr: String::new() };
    let lines = [init(), text("m", "x")];
    // 100 tokens at $4 and one at $20 for a million, and the same for the request in flight.
    let estimated = Cost::Estimated(Micros(2 * 420));
    check(terminated, &lines, &format!("{death_message}, with exit status 143"), estimated);
    let unseen = ClientEnd::Exited { status: None, stderr: String::new() };
    check(unseen, &lines, death_message, estimated);
}

#[test]
fn complete_result_outranks_the_client_end() {
    let idle = || ClientEnd::TimedOut { clock: Clock::Idle, after: Span::minutes(30) };
    let timeout = TurnFailure::Timeout { clock: Clock::Idle, after: Span::minutes(30) };
    let interrupted = |cost, progressed| Answer::Interrupted {
        by: Interruption::Stop,
        cost,
        progressed,
        session: None,
    };
    let check = |lines: &[String], end: ClientEnd, expected: Answer| {
        assert_eq!(after(lines, end, &open()), expected, "{lines:?}");
    };
    let working = || vec![init(), bash("m", "ls")];
    let cut = || vec![init(), bash("m", "ls"), sample::interrupted()];
    let done = || vec![init(), text("m", "x"), success("x")];
    let later = || [done(), cut()].concat();
    let twice = || {
        Answer::Finished(Box::new(Finished { cost: Cost::Reported(Micros(5600)), ..reply("x") }))
    };
    check(&[], ClientEnd::Cancelled, interrupted(FREE, false));
    check(&[init()], ClientEnd::Cancelled, interrupted(Cost::Unknown, false));
    check(&cut(), ClientEnd::Cancelled, interrupted(REPORTED, true));
    check(&done(), ClientEnd::Cancelled, replied("x"));
    check(&later(), ClientEnd::Cancelled, twice());
    check(&cut(), idle(), failed(timeout.clone(), REPORTED));
    check(&[], idle(), failed(timeout, FREE));
    check(&done(), idle(), replied("x"));
    check(&done(), ClientEnd::Settled, replied("x"));
    check(&later(), exited(), twice());
    let retry = sample::retry("401", "authentication_failed");
    let login = auth("authentication_failed (401)");
    check(&[init(), retry.clone()], ClientEnd::Aborted, failed(login, FREE));
    check(&[done(), vec![retry]].concat(), ClientEnd::Aborted, replied("x"));
    assert!(matches!(
        after(&working(), ClientEnd::Cancelled, &open()),
        Answer::Interrupted {
            by: Interruption::Stop,
            cost: Cost::Estimated(_),
            progressed: true,
            session: None
        }
    ));
}

#[test]
fn too_much_output_is_its_own_failure() {
    let check = |event: &[StreamEvent], end: ClientEnd, expected: Answer| {
        let mut turn = ClaudeTurn::default();
        for event in event {
            turn.read_event(event);
        }
        assert_eq!(answer(turn, end, &open(), &Prices::default()), expected);
    };
    let line = |text: String| StreamEvent::Line(text.into_bytes());
    let (flood, cut) =
        (StreamEvent::TooLarge { limit: 1000 }, StreamEvent::LongLine { length: 50_000_000 });
    check(
        std::slice::from_ref(&flood),
        ClientEnd::Flooded,
        failed(output_too_large(1000), Cost::Unknown),
    );
    let unread = Finished { cost: Cost::AtLeast(Micros(2800)), ..reply("x") };
    let event = [line(init()), line(success("x")), flood];
    check(&event, ClientEnd::Flooded, Answer::Finished(Box::new(unread)));
    let lost = [line(init()), cut.clone()];
    check(&lost, exited(), failed(output_too_large(LINE_MAX as u64), Cost::Unknown));
    check(
        &lost,
        ClientEnd::Cancelled,
        Answer::Interrupted {
            by: Interruption::Stop,
            cost: Cost::Unknown,
            progressed: false,
            session: None,
        },
    );
    let message = "a line of 50000000 bytes was too long to read".into();
    let warned = Finished { warnings: vec![Warning::Other { message }], ..reply("x") };
    let event = [line(init()), cut, line(success("x"))];
    check(&event, exited(), Answer::Finished(Box::new(warned)));
}
