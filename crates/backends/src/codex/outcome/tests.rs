use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::Clock;
use raymond_core::prices::Prices;
use raymond_core::run::warning::Warning;
use raymond_core::time::{Span, Timestamp};
use serde_json::{Value, json};

use super::super::prior_turns::PriorTurns;
use super::super::sample::{self, FOLLOWED, MODEL, THREAD, USED};
use super::super::thread_usage::ThreadUsage;
use super::super::turn::{SETTLE_TIME, USAGE_FILE_WAIT};
use super::*;
use crate::process::StreamEvent;

const FREE: Cost = Cost::Reported(Micros::ZERO);
const PAID: Cost = Cost::Estimated(Micros(USED));

fn exited(stderr: &str) -> ClientEnd {
    let status = Some(ExitStatus::from_raw(1 << 8));
    ClientEnd::Exited { status, stderr: stderr.to_owned() }
}

fn open() -> SessionStep {
    SessionStep::Open(SessionId::new("chosen"))
}

fn own() -> SessionId {
    SessionId::new(THREAD)
}

/// Returns a turn with these lines and this rollout.
fn turn_of(lines: &[String], entries: &[String], cap: Option<Micros>, form: Form) -> CodexTurn {
    let home = tempfile::tempdir().unwrap();
    let entries: Vec<String> =
        sample::began("a").into_iter().chain(entries.iter().cloned()).collect();
    sample::write(home.path(), THREAD, &entries);
    let mut turn = CodexTurn::new(
        ThreadUsage::new(home.path(), Arc::new(Prices::default()), PriorTurns::default()),
        cap,
        form,
    );
    for line in lines {
        turn.read_event(&StreamEvent::Line(line.clone().into_bytes()));
    }
    turn.poll();
    turn
}

fn after(lines: &[String], entries: &[String], end: ClientEnd) -> Answer {
    answer(turn_of(lines, entries, None, Form::Text), end, &open())
}

fn said(more: &[String]) -> Vec<String> {
    [sample::thread(THREAD), sample::begins()].into_iter().chain(more.iter().cloned()).collect()
}

fn reply(text: &str) -> Finished<Reply> {
    Finished {
        model: Some(MODEL.into()),
        session: Some(own()),
        ..Finished::new(Reply::new(text), PAID)
    }
}

fn failed(failure: TurnFailure, cost: Cost) -> Answer {
    Answer::Failed { failure, cost, denied: Vec::new(), session: Some(own()) }
}

#[test]
fn last_message_is_answer_and_thread_is_named() {
    let lines = said(&[
        sample::text("first"),
        sample::command("item.completed", "ls", "completed"),
        sample::text("last"),
        sample::completed(),
    ]);
    let entries = [sample::used("a")];
    let answer = after(&lines, &entries, exited(""));
    assert_eq!(answer, Answer::Finished(Box::new(reply("last"))));
    let turn = turn_of(&lines, &entries, None, Form::Text);
    let resumed =
        super::answer(turn, ClientEnd::Settled, &SessionStep::Resume(SessionId::new(THREAD)));
    let expected = Finished { session: None, ..reply("last") };
    assert_eq!(resumed, Answer::Finished(Box::new(expected)));
}

#[test]
fn warning_called_error_fails_nothing() {
    let lines = said(&[sample::note("no metadata"), sample::text("fine"), sample::completed()]);
    let message = "the client says: no metadata".to_owned();
    let expected = Finished { warnings: vec![Warning::Other { message }], ..reply("fine") };
    let answer = after(&lines, &[sample::used("a")], exited(""));
    assert_eq!(answer, Answer::Finished(Box::new(expected)));
}

#[test]
fn requested_json_is_read_in_any_shape() {
    let check = |text: &str, form: Form, expected: Option<Value>| {
        let lines = said(&[sample::text(text), sample::completed()]);
        let turn = turn_of(&lines, &[sample::used("a")], None, form);
        let Answer::Finished(reply) = answer(turn, exited(""), &open()) else {
            panic!("it replied")
        };
        assert_eq!((reply.reply.text.as_str(), reply.reply.structured), (text, expected));
    };
    check(r#"{"a":1}"#, Form::Json, Some(json!({ "a": 1 })));
    // The caller that asked for a shape validates it.
    check(r#"["another", "shape"]"#, Form::Json, Some(json!(["another", "shape"])));
    check("no", Form::Json, None);
    check(r#"{"a":1}"#, Form::Text, None);
}

#[test]
fn rollout_decides_the_kind_of_failure() {
    let check = |info: Value, message: &str, cost: Cost, expected: TurnFailure| {
        let lines = said(&[sample::error_notice(message), sample::failed(message)]);
        let answer = after(&lines, &[sample::ended(&info)], exited(""));
        assert_eq!(answer, failed(expected, cost), "{info} {message}");
    };
    let why = |why: &str| why.to_owned();
    let (unknown, task) = (Cost::Unknown, |said| TurnFailure::Task { why: why(said) });
    let transient = |said| TurnFailure::Transient { why: why(said) };
    check(json!("internal_server_error"), "busy", FREE, transient("busy"));
    check(json!("other"), "", unknown, task("no reason given"));
    check(json!("model_not_found"), "no", FREE, task("no"));
    let broke = "stream disconnected before completion: x";
    check(json!("other"), broke, unknown, transient(broke));
    let missing = "Missing environment variable: `GATEWAY_KEY`.";
    check(json!("other"), missing, FREE, login_failure(missing));
    let refused = json!({ "http_connection_failed": { "http_status_code": 401 } });
    check(refused, "no", FREE, login_failure("no"));
    let quota = TurnFailure::Quota { until: None, why: why("enough") };
    check(json!("usage_limit_exceeded"), "enough", FREE, quota);
}

// proves: A31, A43
#[test]
fn failed_turn_is_free_only_if_refused() {
    let check = |info: Value, message: &str, expected: Cost| {
        let lines = said(&[sample::failed(message)]);
        let turn = turn_of(&lines, &[sample::ended(&info)], None, Form::Text);
        assert_eq!(turn.cost(), expected, "{info} {message}");
    };
    let status = |kind: &str, status: u16| json!({ kind: { "http_status_code": status } });
    for kind in ["unauthorized", "rate_limit_exceeded", "bad_request", "session_budget_exceeded"] {
        check(json!(kind), "no", FREE);
    }
    for kind in ["server_overloaded", "internal_server_error"] {
        check(json!(kind), "no", FREE);
    }
    for kind in ["context_window_exceeded", "cyber_policy", "other"] {
        check(json!(kind), "no", Cost::Unknown);
    }
    for (code, expected) in [(400, FREE), (407, FREE), (499, FREE), (501, FREE), (529, FREE)] {
        check(status("http_connection_failed", code), "no", expected);
    }
    // The model behind a gateway may have worked.
    for code in [408, 502, 504, 505] {
        check(status("response_too_many_failed_attempts", code), "no", Cost::Unknown);
    }
    check(json!("other"), "unexpected status 502 Bad Gateway: no", Cost::Unknown);
    for code in [401, 429, 503] {
        check(status("response_stream_disconnected", code), "no", Cost::Unknown);
    }
    let broke = "stream disconnected before completion: last status: 503";
    check(json!("other"), broke, Cost::Unknown);
    check(status("http_connection_failed", 404), "no", FREE);
    check(status("response_too_many_failed_attempts", 429), "no", FREE);
    check(status("response_stream_disconnected", 408), "no", Cost::Unknown);
    check(status("response_stream_connection_failed", 503), "no", FREE);
    check(json!("other"), "unexpected status 400 Bad Request: no", FREE);
    check(json!("other"), "unexpected status 500 Internal Server Error: no", FREE);
    check(json!("http_connection_failed"), "no", Cost::Unknown);
}

// proves: A31
#[test]
fn failed_request_is_paid_unless_refused() {
    let check = |info: &str, expected: u64| {
        let entries = [sample::calls(), sample::used("a"), sample::returned()];
        let entries = [&entries[..], &[sample::ended(&json!(info))]].concat();
        let turn = turn_of(&said(&[sample::failed("no")]), &entries, None, Form::Text);
        assert_eq!(turn.cost(), Cost::Estimated(Micros(expected)), "{info}");
    };
    check("unauthorized", USED);
    check("internal_server_error", USED);
    check("response_stream_disconnected", USED + FOLLOWED);
}

// proves: A43
#[test]
fn refusal_after_broken_request_is_not_free() {
    let check = |why: &str, expected: Cost| {
        let limited = "exceeded retry limit, last status: 429 Too Many Requests";
        let notice = sample::error_notice(&format!("Reconnecting... 1/5 ({why})"));
        let lines = said(&[notice.clone(), sample::failed(limited)]);
        let ended = sample::ended(&json!("other"));
        assert_eq!(turn_of(&lines, &[ended], None, Form::Text).cost(), expected, "{why}");
        let again = sample::error_notice(&format!("Reconnecting... 2/5 ({limited})"));
        let turn = turn_of(&said(&[notice, again]), &[], None, Form::Text);
        assert!(turn.should_abort());
        assert_eq!(turn.cost(), expected, "{why}, then a limit");
    };
    check("stream disconnected before completion: x", Cost::Unknown);
    check("stream disconnected before completion: last status: 503", Cost::Unknown);
    check("unexpected status 502 Bad Gateway: no", Cost::Unknown);
    check("unexpected status 503 Service Unavailable: no", FREE);
}

#[test]
fn a_limit_says_until_when() {
    let entries = [sample::limits(20, 100), sample::ended(&json!("usage_limit_exceeded"))];
    let until = Some(Timestamp(2_000_000));
    let quota = TurnFailure::Quota { until, why: "enough".into() };
    let answer = after(&said(&[sample::failed("enough")]), &entries, exited(""));
    assert_eq!(answer, failed(quota, FREE));
}

#[test]
fn client_with_useless_retries_is_ended() {
    let check = |notice: &str, expected: Option<TurnFailure>| {
        let turn = turn_of(&said(&[sample::error_notice(notice)]), &[], None, Form::Text);
        assert_eq!(turn.should_abort(), expected.is_some(), "{notice}");
        if let Some(failure) = expected {
            assert_eq!(answer(turn, ClientEnd::Aborted, &open()), failed(failure, FREE));
        }
    };
    let notice = "Reconnecting... 1/5 (unexpected status 401 Unauthorized: no)";
    check(notice, Some(login_failure(notice)));
    let notice = "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)";
    check(notice, Some(TurnFailure::Quota { until: None, why: notice.to_owned() }));
    check("Reconnecting... 1/5 (stream disconnected before completion: x)", None);
    check("unexpected status 401 Unauthorized: its type follows", None);
}

#[test]
fn turn_over_its_share_may_finish() {
    let check = |share: u64, entries: &[String], expected: bool| {
        let turn = turn_of(&said(&[]), entries, Some(Micros(share)), Form::Text);
        assert_eq!(turn.should_abort(), expected, "{share}");
        turn
    };
    let (calls, used) = (sample::calls(), sample::used("a"));
    check(USED + 1, &[calls.clone(), used.clone()], false);
    check(USED, std::slice::from_ref(&used), false);
    check(USED, &[used.clone(), used.clone()], true);
    let turn = check(USED, &[calls, used.clone()], true);
    let capped =
        Answer::Capped { cost: PAID, progressed: true, denied: Vec::new(), session: Some(own()) };
    assert_eq!(answer(turn, ClientEnd::Aborted, &open()), capped);
    // The turn finished before it could be ended.
    let lines = said(&[sample::text("done"), sample::completed()]);
    let turn = turn_of(&lines, &[sample::calls(), used], Some(Micros(1)), Form::Text);
    assert_eq!(
        answer(turn, ClientEnd::Aborted, &open()),
        Answer::Finished(Box::new(reply("done")))
    );
}

#[test]
fn unpriced_model_ends_turn_with_share() {
    let named = [sample::began("b").join("\n").replace(MODEL, "house-model")];
    let asked = [named[0].clone(), sample::calls(), sample::used("b")];
    let done = said(&[sample::text("done"), sample::completed()]);
    let check = |lines: &[String], entries: &[String]| {
        let turn = turn_of(lines, entries, Some(Micros(1_000_000)), Form::Text);
        let expected = failed(unpriced_failure("house-model"), Cost::Unknown);
        assert_eq!(answer(turn, ClientEnd::Aborted, &open()), expected);
        let free = turn_of(lines, entries, None, Form::Text);
        assert!(!free.should_abort(), "nothing is to be kept");
    };
    assert!(turn_of(&said(&[]), &named, Some(Micros(1)), Form::Text).should_abort());
    check(&said(&[]), &named);
    check(&said(&[]), &asked);
    // The turn finished before it could be ended; the next one would be ended.
    check(&done, &asked);
    // The answers of an earlier turn do not matter.
    let later = [asked.as_slice(), &sample::began("c"), &[sample::used("c")]].concat();
    let turn = turn_of(&done, &later, Some(Micros(1_000_000)), Form::Text);
    assert_eq!(
        answer(turn, ClientEnd::Settled, &open()),
        Answer::Finished(Box::new(reply("done")))
    );
}

#[test]
fn own_budget_of_client_ends_turn_as_capped() {
    let entries = [sample::used("a"), sample::ended(&json!("session_budget_exceeded"))];
    let capped =
        Answer::Capped { cost: PAID, progressed: true, denied: Vec::new(), session: Some(own()) };
    assert_eq!(after(&said(&[sample::failed("exhausted")]), &entries, exited("")), capped);
}

#[test]
fn only_a_required_thread_can_be_lost() {
    let id = SessionId::new("00000000-0000-8000-8000-000000000000");
    let stderr = format!("Error: thread/resume failed: no rollout found for thread id {id} (code)");
    let check = |step: &SessionStep, expected: TurnFailure| {
        let turn = turn_of(&[], &[], None, Form::Text);
        let expected =
            Answer::Failed { failure: expected, cost: FREE, denied: Vec::new(), session: None };
        assert_eq!(answer(turn, exited(&stderr), step), expected);
    };
    let lost = TurnFailure::LostSession { session: id.clone() };
    check(&SessionStep::Resume(id.clone()), lost.clone());
    check(&SessionStep::Branch { from: id.clone(), to: SessionId::new("t") }, lost);
    let why = death_message(&exited(&stderr));
    check(&open(), TurnFailure::Transient { why: why.clone() });
    check(
        &SessionStep::Resume(SessionId::new("another")),
        TurnFailure::Transient { why: why.clone() },
    );
    // A client that asked the model is not followed by another client with the same share.
    let asked = turn_of(&[sample::begins()], &[], None, Form::Text);
    let Answer::Failed { failure, cost, .. } =
        answer(asked, exited(&stderr), &SessionStep::Resume(id))
    else {
        panic!("it has no answer");
    };
    assert_eq!((failure, cost), (TurnFailure::Transient { why }, Cost::Unknown));
}

#[test]
fn client_without_result_died_or_was_ended() {
    let entries = [sample::calls(), sample::used("a")];
    let begun = said(&[sample::command("item.started", "ls", "in_progress")]);
    let why = death_message(&exited("oh"));
    let answer = after(&begun, &entries, exited("oh"));
    assert_eq!(answer, failed(TurnFailure::Transient { why }, PAID));
    let interrupted = Answer::Interrupted {
        by: Interruption::Stop,
        cost: PAID,
        progressed: true,
        session: Some(own()),
    };
    assert_eq!(after(&begun, &entries, ClientEnd::Cancelled), interrupted);
    let asking = [&entries[..], &[sample::returned()]].concat();
    let cost = Cost::Estimated(Micros(USED + FOLLOWED));
    let interrupted = Answer::Interrupted {
        by: Interruption::Stop,
        cost,
        progressed: true,
        session: Some(own()),
    };
    assert_eq!(after(&begun, &asking, ClientEnd::Cancelled), interrupted);
    let (clock, after_time) = (Clock::Idle, Span::minutes(30));
    let timeout = TurnFailure::Timeout { clock, after: after_time };
    let end = ClientEnd::TimedOut { clock, after: after_time };
    assert_eq!(after(&begun, &entries, end), failed(timeout, PAID));
}

#[test]
fn possibly_paid_turn_is_never_free() {
    let check = |lines: &[String], entries: &[String], expected: Cost| {
        assert_eq!(turn_of(lines, entries, None, Form::Text).cost(), expected);
    };
    check(&[sample::thread(THREAD)], &[], FREE);
    check(&said(&[]), &[], Cost::Unknown);
    check(&said(&[sample::completed()]), &[], Cost::Unknown);
    check(&said(&[sample::failed("no")]), &[], Cost::Unknown);
    check(&said(&[sample::failed("no")]), &[sample::used("a")], PAID);
    // The rollout may not contain this turn yet.
    check(&said(&[]), &[sample::used("a"), sample::ended(&Value::Null)], Cost::Unknown);
}

#[test]
fn calls_that_were_declined_are_listed() {
    let lines = said(&[
        sample::command("item.completed", "rm x", "declined"),
        sample::files("declined"),
        sample::text("well"),
        sample::completed(),
    ]);
    let denied = vec!["the command rm x".to_owned(), "the edit of /w/a.rs, /w/b.rs".to_owned()];
    let expected = Finished { denied, ..reply("well") };
    let answer = after(&lines, &[sample::used("a")], exited(""));
    assert_eq!(answer, Answer::Finished(Box::new(expected)));
}

#[test]
fn unreadable_message_is_not_an_answer() {
    let mut turn = turn_of(&said(&[sample::text("first")]), &[sample::used("a")], None, Form::Text);
    turn.read_event(&StreamEvent::LongLine { length: 20_000_000 });
    turn.read_event(&StreamEvent::Line(sample::completed().into_bytes()));
    let expected = failed(output_too_large(LINE_MAX as u64), PAID);
    assert_eq!(answer(turn, exited(""), &open()), expected);
}

/// Returns a turn with these lines and without a rollout.
fn unseen_turn(lines: &[String], cap: Option<Micros>) -> CodexTurn {
    let nowhere =
        ThreadUsage::new("/nowhere".as_ref(), Arc::new(Prices::default()), PriorTurns::default());
    let mut turn = CodexTurn::new(nowhere, cap, Form::Text);
    for line in lines {
        turn.read_event(&StreamEvent::Line(line.clone().into_bytes()));
    }
    turn.poll();
    turn
}

#[tokio::test(start_paused = true)]
async fn invisible_spending_ends_turn_with_share() {
    let share = Some(Micros(1_000_000));
    let mut turn = unseen_turn(&said(&[]), share);
    assert!(!turn.should_abort(), "the client may be about to open its books");
    tokio::time::advance(USAGE_FILE_WAIT).await;
    turn.poll();
    assert!(turn.should_abort());
    let answer = answer(turn, ClientEnd::Aborted, &open());
    let Answer::Failed { failure: TurnFailure::Task { why }, cost: Cost::Unknown, .. } = answer
    else {
        panic!("{answer:?}")
    };
    assert!(
        why.contains("the client writes no readable file of its thread in /nowhere/sessions"),
        "{why}"
    );
    // A faster client fails in the same way, but a turn without a share continues.
    let lines = said(&[sample::text("done"), sample::completed()]);
    let answer = super::answer(unseen_turn(&lines, share), exited(""), &open());
    assert!(matches!(answer, Answer::Failed { failure: TurnFailure::Task { .. }, .. }));
    let answer = super::answer(unseen_turn(&said(&[]), share), exited("oh"), &open());
    let Answer::Failed { failure: TurnFailure::Task { why }, .. } = answer else {
        panic!("{answer:?}")
    };
    assert!(why.contains(": oh; could not watch the cost"), "{why}");
    let answer = super::answer(unseen_turn(&lines, None), exited(""), &open());
    assert!(matches!(answer, Answer::Finished(_)), "{answer:?}");
    // A client that has not started has nothing to write.
    let mut turn = unseen_turn(&[sample::thread(THREAD)], share);
    tokio::time::advance(USAGE_FILE_WAIT).await;
    turn.poll();
    assert!(!turn.should_abort());
}

#[test]
fn new_thread_without_rollout_is_priced_by_stream() {
    let completed = sample::completed().replace("9000000", "1000");
    let lines = said(&[sample::text("done"), completed]);
    let check = |opens: Option<&str>, expected: Cost| {
        let mut turn = unseen_turn(&lines, Some(Micros(1)));
        turn.opened_model = opens.map(str::to_owned);
        assert_eq!(turn.cost(), expected);
        let answer = answer(turn, exited(""), &open());
        assert_eq!(matches!(answer, Answer::Finished(_)), expected != Cost::Unknown);
    };
    check(Some(MODEL), Cost::Estimated(Micros(5000 + 30000)));
    check(Some("house-model"), Cost::Unknown);
    check(None, Cost::Unknown);
}

#[test]
fn turn_without_start_line_is_paid_and_watched() {
    let entries = [sample::calls(), sample::used("a")];
    let check = |lines: &[String], entries: &[String], expected: Cost| {
        let thread = sample::thread(THREAD);
        let lines: Vec<String> = [thread].iter().chain(lines).cloned().collect();
        let turn = turn_of(&lines, entries, Some(Micros(USED)), Form::Text);
        assert_eq!(turn.cost(), expected, "{lines:?}");
        assert_eq!(turn.should_abort(), expected == PAID && !turn.is_complete(), "{lines:?}");
        assert!(turn.poll_interval().is_some());
    };
    check(&[], &[], FREE);
    check(&[sample::note("careful")], &[], FREE);
    check(&["{\"type\":\"turn.sta".to_owned()], &entries, PAID);
    check(&[sample::text("hi")], &[], Cost::Unknown);
    check(&[sample::command("item.started", "ls", "in_progress")], &[], Cost::Unknown);
    check(&[sample::completed()], &[], Cost::Unknown);
    check(&[sample::completed()], &entries, PAID);
}

// proves: S33
#[test]
fn wrong_thread_is_a_failure_naming_both() {
    let other = "01a1df23-b000-7e62-ac75-9fbb433c5c8e";
    let check = |lines: &[String], step: &SessionStep, expected: Option<&str>| {
        let lines: Vec<String> =
            lines.iter().cloned().chain([sample::text("hi"), sample::completed()]).collect();
        let answer =
            answer(turn_of(&lines, &[sample::used("a")], None, Form::Text), exited(""), step);
        match (answer, expected) {
            (Answer::Finished(_), None) => {}
            (Answer::Failed { failure, session: None, .. }, Some(why)) => {
                assert_eq!(failure, TurnFailure::Task { why: why.to_owned() });
            }
            (answer, _) => panic!("{answer:?}"),
        }
    };
    let (own, foreign) = (sample::thread(THREAD), sample::thread(other));
    let wrong_session_failure = |from: &str, to: &str| {
        format!("the client should have written thread {from} but reports thread {to}")
    };
    let resume = SessionStep::Resume(SessionId::new(THREAD));
    check(&[own.clone(), own.clone()], &resume, None);
    check(std::slice::from_ref(&foreign), &resume, Some(&wrong_session_failure(THREAD, other)));
    check(&[own.clone(), foreign.clone()], &resume, Some(&wrong_session_failure(THREAD, other)));
    check(&[own.clone(), foreign], &open(), Some(&wrong_session_failure(THREAD, other)));
    let branch = SessionStep::Branch { from: SessionId::new(THREAD), to: SessionId::new("t") };
    let why = format!("the client should have branched thread {THREAD} but continued it");
    check(&[own], &branch, Some(&why));
}

#[tokio::test(start_paused = true)]
async fn turn_over_its_share_is_ended_after_delay() {
    let mut turn = turn_of(&said(&[]), &[sample::used("a")], Some(Micros(USED)), Form::Text);
    assert!(!turn.should_abort(), "it may have said its last word");
    tokio::time::advance(SETTLE_TIME).await;
    turn.poll();
    assert!(turn.should_abort());
}

#[tokio::test(start_paused = true)]
async fn missing_token_counts_end_turn_with_share() {
    let entries = [sample::calls(), sample::returned()];
    let mut turn = turn_of(&said(&[]), &entries, Some(Micros(1)), Form::Text);
    assert!(!turn.should_abort(), "the tokens may follow");
    tokio::time::advance(SETTLE_TIME).await;
    turn.poll();
    let answer = answer(turn, ClientEnd::Aborted, &open());
    let Answer::Failed { failure: TurnFailure::Task { why }, .. } = answer else {
        panic!("{answer:?}")
    };
    assert!(why.contains("the client writes no readable token counts"), "{why}");
    // The same applies to a turn that ended before the check.
    let lines = said(&[sample::text("done"), sample::completed().replace("9000000", "null")]);
    let turn = turn_of(&lines, &[], Some(Micros(1)), Form::Text);
    let answer = super::answer(turn, exited(""), &open());
    assert!(matches!(answer, Answer::Failed { failure: TurnFailure::Task { .. }, .. }));
}

// proves: A7
#[tokio::test(start_paused = true)]
async fn a_request_in_flight_is_never_free() {
    let entries = [sample::calls(), sample::used("a"), sample::returned()];
    let asking = |cap| turn_of(&said(&[]), &entries, cap, Form::Text);
    let both = Cost::Estimated(Micros(USED + FOLLOWED));
    // The age of the request does not matter.
    let mut at_once = asking(None);
    at_once.before_end();
    assert_eq!(at_once.cost(), both);
    // A used-up share is charged in full, whether a next request was sent or not.
    let mut capped = asking(Some(Micros(USED)));
    assert!(capped.should_abort());
    capped.before_end();
    assert_eq!(capped.cost(), PAID);
    let mut later = asking(Some(Micros(USED)));
    tokio::time::advance(SETTLE_TIME).await;
    later.before_end();
    assert_eq!(later.cost(), both);
    // The client retries: the next request may be open.
    let notice = || sample::error_notice("Reconnecting... 1/5 (unexpected status 503 Busy)");
    let mut again = asking(None);
    again.read_event(&StreamEvent::Line(notice().into_bytes()));
    assert!(again.is_stalled());
    again.before_end();
    assert_eq!(again.cost(), both);
    let cost = |notice: String| turn_of(&said(&[notice]), &[], None, Form::Text).cost();
    assert_eq!(cost(notice()), Cost::Unknown);
    // A client that is not logged in gets no answer.
    let refused = sample::error_notice("Reconnecting... 1/5 (unexpected status 401 Unauthorized)");
    assert_eq!(cost(refused), FREE);
}

#[test]
fn unread_output_may_be_start_of_turn() {
    for line in ["{\"type\":\"turn.sta", "{\"type\":\"novelty\"}", "noise"] {
        let lines = [sample::thread(THREAD), line.to_owned()];
        assert_eq!(turn_of(&lines, &[], None, Form::Text).cost(), Cost::Unknown, "{line}");
    }
}

#[test]
fn partly_read_rollout_gives_a_lower_bound() {
    let home = tempfile::tempdir().unwrap();
    let mut entries = sample::began("a");
    entries.push(sample::used("a"));
    sample::write(home.path(), THREAD, &entries);
    let thread_usage =
        ThreadUsage::new(home.path(), Arc::new(Prices::default()), PriorTurns::default());
    let mut turn = CodexTurn::new(thread_usage, Some(Micros(100_000_000)), Form::Text);
    for line in said(&[]) {
        turn.read_event(&StreamEvent::Line(line.into_bytes()));
    }
    turn.poll();
    assert_eq!(turn.cost(), PAID);
    let mut place = home.path().join("sessions");
    while place.is_dir() {
        place = std::fs::read_dir(&place).unwrap().flatten().next().unwrap().path();
    }
    // Too long to read while the client waits, like a file with a read error.
    let file = std::fs::OpenOptions::new().write(true).open(place).unwrap();
    file.set_len(crate::process::TRANSCRIPT_MAX + 1).unwrap();
    turn.poll();
    assert_eq!(turn.cost(), Cost::AtLeast(Micros(USED)));
    assert!(turn.is_spending_unknown(), "what it costs cannot be watched any more");
}
