use raymond_core::prices::Price;

use super::super::sample::{self, aborted, bash, init, of_agent, success, text};
use super::super::turn::Turn;
use super::*;
use crate::headless::Fold as _;
use crate::process::Heard;

/// One dollar for a million tokens read, two for a million written.
fn prices() -> Prices {
    let price = Price { input: Micros(1_000_000), output: Micros(2_000_000), ..zero() };
    Prices::default().with([("claude-opus-5-5".to_owned(), price)])
}

fn zero() -> Price {
    let free = Micros::ZERO;
    Price { input: free, output: free, cache_write: free, cache_read: free }
}

fn after(lines: &[String]) -> Cost {
    let mut turn = Turn::default();
    for line in lines {
        turn.hear(&Heard::Line(line.clone().into_bytes()));
    }
    turn.spending.cost(&prices())
}

#[track_caller]
fn check(lines: &[String], expected: Cost) {
    assert_eq!(after(lines), expected, "{lines:#?}");
}

const FREE: Cost = Cost::Reported(Micros::ZERO);

fn reported(amount: u64) -> Cost {
    Cost::Reported(Micros(amount))
}

fn estimated(amount: u64) -> Cost {
    Cost::Estimated(Micros(amount))
}

fn at_least(amount: u64) -> Cost {
    Cost::AtLeast(Micros(amount))
}

/// A message of 100 tokens read and one written.
const SMALL: u64 = 102;
/// A report of [`sample::USAGE`].
const REPORT: u64 = 2800;

/// A message that reads this many tokens.
fn reading(id: &str, tokens: &str) -> String {
    text(id, "x").replace(r#""input_tokens":100,"#, &format!(r#""input_tokens":{tokens},"#))
}

fn foreign(line: &str) -> String {
    line.replace("claude-opus-5-5", "house-model")
}

#[test]
fn results_report_the_cost_since_the_last_result() {
    let done = || success("x");
    check(&[], FREE);
    check(&[init(), sample::api_error("529")], FREE);
    check(&[init(), text("m", "a"), done()], reported(REPORT));
    check(&[init(), text("m", "a"), done(), init(), done()], reported(2 * REPORT));
    check(&[init(), bash("m", "ls"), sample::cut_off()], reported(REPORT));
    // The client holds a result back while a subagent works, and begins the next round before it.
    let late = [init(), text("m", "a"), init(), text("n", "b"), done()];
    check(&late, at_least(REPORT + SMALL));
    let nothing = || sample::result("success", sample::NO_USAGE);
    check(&[&late[..], &[nothing()]].concat(), reported(REPORT));
}

#[test]
fn a_turn_is_free_only_if_no_request_was_possible() {
    check(&[String::new()], FREE);
    check(&[sample::lost("s")], FREE);
    check(&[sample::lost("s"), sample::lost("t")], FREE);
    // A client that does not know its session may report that it used no model.
    let empty =
        r#""model_usage_since_last_result":{},"errors":["No conversation found with session"]"#;
    let refused = sample::result("error_during_execution", empty);
    check(std::slice::from_ref(&refused), FREE);
    check(&[refused, init(), success("x")], reported(REPORT));
    check(&[init(), sample::retry("401", "authentication_failed")], FREE);
    // Raymond interrupts such a client at once, and it reports that it used no model.
    let interrupted =
        || sample::result("error_during_execution", r#""model_usage_since_last_result":{}"#);
    let login = sample::retry("401", "authentication_failed");
    check(&[init(), login, interrupted()], FREE);
    check(&[init(), interrupted()], Cost::Unknown);
    check(&[init(), sample::retry("529", "overloaded")], Cost::Unknown);
    check(&[init()], Cost::Unknown);
    check(&[init(), sample::lost("s")], Cost::Unknown);
    check(&[sample::lost("s"), init()], Cost::Unknown);
    // Output before `init`, and streams without one.
    check(&[sample::system("hook_started", r#""hook":"x""#)], Cost::Unknown);
    check(&["Warning: something".into()], Cost::Unknown);
    check(&[r#"{"type":"novelty"}"#.into()], Cost::Unknown);
    check(&[text("m", "a")], estimated(2 * SMALL));
    check(&[sample::result("success", r#""result":"x""#)], Cost::Unknown);
    check(&[success("x")], reported(REPORT));
}

#[test]
fn unread_output_makes_a_cost_incomplete() {
    let check = |heard: &[Heard], expected: Cost| {
        let mut turn = Turn::default();
        for heard in heard {
            turn.hear(heard);
        }
        assert_eq!(turn.spending.cost(&prices()), expected, "{heard:?}");
    };
    let line = |text: String| Heard::Line(text.into_bytes());
    let (long, flood) = (Heard::Cut { length: 50_000_000 }, Heard::Flooded { limit: 1000 });
    check(std::slice::from_ref(&long), Cost::Unknown);
    check(std::slice::from_ref(&flood), Cost::Unknown);
    check(&[line(init()), line(text("m", "a")), long.clone()], at_least(2 * SMALL));
    check(&[line(init()), long, line(success("x"))], reported(REPORT));
    // A damaged line may have been a message; a line of another kind was none.
    let damaged = || line(r#"{"type":"assistant","message":{"usage":{"inp"#.to_owned());
    let log = || line("Warning: something".to_owned());
    check(&[line(init()), line(text("m", "a")), damaged()], at_least(2 * SMALL));
    check(&[line(init()), line(text("m", "a")), log()], estimated(2 * SMALL));
    check(&[line(init()), line(success("x")), flood], at_least(REPORT));
    let twice = text("m", "a").replacen('{', r#"{"message":{},"#, 1);
    check(&[line(init()), line(twice)], Cost::Unknown);
}

#[test]
fn an_interrupted_turn_pays_for_the_request_in_flight() {
    check(&[init(), text("m", "hello")], estimated(2 * SMALL));
    check(&[init(), bash("m", "ls"), sample::user()], estimated(100 + 16 + 100 + 16));
    // Like the most expensive message so far, wherever that was.
    let mixed = [init(), text("a", "x"), reading("b", "5000"), text("c", "x")];
    check(&mixed, estimated(2 * SMALL + 5002 + 5002));
    let second = [init(), reading("a", "5000"), success("x"), init(), text("b", "x")];
    check(&second, estimated(REPORT + SMALL + 5002));
    // The letters count while a message streams: 4000 are 1000 tokens.
    let long = "x".repeat(2000);
    check(&[init(), text("m", &long), text("m", &long)], estimated(2 * (100 + 2000)));
    let thought = r#"{"type":"thinking","thinking":"1234567890"}"#;
    check(&[sample::block("m", thought)], estimated(2 * (100 + 2 * 3)));
    // The client reports only answered requests.
    let streaming = || aborted("aborted_streaming", sample::USAGE);
    check(&[init(), text("m", "a"), streaming()], estimated(REPORT + SMALL));
    check(&[init(), streaming()], at_least(REPORT));
    let again = [init(), text("m", "a"), streaming(), init(), text("n", "b"), success("x")];
    check(&again, estimated(2 * REPORT + SMALL));
    check(&[init(), text("m", "a"), sample::retry("401", "no")], estimated(2 * SMALL));
}

#[test]
fn every_subagent_may_have_a_request_in_flight() {
    let agent = |call: &str, tokens: &str| of_agent(call, &reading("s", tokens));
    let two = [init(), text("m", "a"), agent("c", "1000"), agent("d", "3000")];
    let streamed = SMALL + 1002 + 3002;
    check(&two, estimated(streamed + 3002 + 1002 + 3002));
    // One that has streamed nothing yet; a shell asks no model.
    let started = [init(), text("m", "a"), sample::task("local_agent", "t")];
    check(&started, estimated(3 * SMALL));
    check(&[init(), text("m", "a"), sample::task("local_bash", "t")], estimated(2 * SMALL));
    // An interrupted client ends its subagents before it ends.
    let killed = sample::system("task_updated", r#""task_id":"t","patch":{"status":"killed"}"#);
    let answer = sample::user().replace(r#""tool_use_id":"t""#, r#""tool_use_id":"call-t""#);
    let ended = [&started[..], &[killed, answer]].concat();
    check(&ended, estimated(3 * SMALL));
    check(&[&ended[..], &[sample::cut_off()]].concat(), estimated(REPORT + SMALL));
    check(&[&ended[..], &[sample::capped()]].concat(), estimated(REPORT + SMALL));
    check(&[&ended[..], &[success("x")]].concat(), reported(REPORT));
    // A result comes while a subagent works in the background.
    let behind = [&started[..], &[success("x")]].concat();
    check(&behind, estimated(REPORT + SMALL));
    let over = sample::system("task_notification", r#""task_id":"t","status":"completed""#);
    let notified = [&behind[..], &[over, init(), text("n", "b"), success("y")]].concat();
    check(&notified, reported(2 * REPORT));
}

#[test]
fn a_round_without_an_answer_is_unknown() {
    let done = || success("x");
    check(&[init(), done(), init()], at_least(REPORT));
    check(&[init(), text("m", "a"), done(), init()], at_least(REPORT + SMALL));
    let early = || aborted("aborted_streaming", sample::NO_USAGE);
    check(&[init(), early()], Cost::Unknown);
    // A client that was interrupted does not know that nothing was used.
    check(&[init(), aborted("aborted_tools", sample::NO_USAGE)], Cost::Unknown);
    check(&[init(), done(), init(), early()], at_least(REPORT));
}

#[test]
fn a_model_without_a_price_is_unknown() {
    let unknown = || foreign(&text("m", "hello"));
    check(&[init(), unknown()], Cost::Unknown);
    check(&[init(), text("a", "x"), unknown()], at_least(SMALL + SMALL));
    check(&[init(), success("x"), unknown()], at_least(REPORT));
    check(&[init(), success("x"), init(), text("a", "x"), unknown()], at_least(REPORT + 2 * SMALL));
    let nameless = text("m", "x").replace(r#""model":"claude-opus-5-5","#, "");
    check(&[init(), nameless], Cost::Unknown);
}

#[test]
fn a_result_without_a_complete_report_is_incomplete() {
    let silent = |more: &str| sample::result("success", &format!(r#""result":"x"{more}"#));
    let usage = |usage: &str| silent(&format!(r#","model_usage_since_last_result":{usage}"#));
    for report in ["null", "{}", "[]", "17", r#""much""#, r#"{"a":17}"#, r#"{"a":null}"#] {
        check(&[init(), text("m", "a"), usage(report)], at_least(SMALL));
    }
    check(&[init(), text("m", "a"), silent("")], at_least(SMALL));
    // A later report covers only its own round.
    let later = [init(), text("m", "a"), silent(""), init(), text("m", "a"), success("x")];
    check(&later, at_least(SMALL + REPORT));
    for cost in [r#""1.0""#, "-1.0", "1e308", "null", "true", "{}"] {
        let odd = format!(r#"{{"costUSD":{cost}}}"#);
        check(&[init(), usage(&format!(r#"{{"a":{odd}}}"#))], Cost::Unknown);
        let partly = format!(r#"{{"a":{{"costUSD":5.0}},"claude-opus-5-5":{odd}}}"#);
        check(&[init(), text("m", "a"), usage(&partly)], at_least(5_000_000 + SMALL));
        let partly = format!(r#"{{"claude-opus-5-5":{{"costUSD":5.0}},"a":{odd}}}"#);
        check(&[init(), text("m", "a"), usage(&partly)], at_least(5_000_000));
    }
}

#[test]
fn tokens_are_whole_numbers_or_unknown() {
    for odd in ["1000000.0", r#""1000000""#, "null", "-5", "1e30", "1e6", "true", "[]", "{}"] {
        check(&[init(), reading("m", odd)], at_least(2 * 2));
        let output =
            text("m", "x").replace(r#""output_tokens":1"#, &format!(r#""output_tokens":{odd}"#));
        check(&[init(), output], at_least(2 * 100));
        let both = [init(), text("a", "x"), reading("m", odd)];
        check(&both, at_least(SMALL + 2 + SMALL));
        // A report covers what the stream counts in an odd way.
        check(&[init(), reading("m", odd), success("x")], reported(REPORT));
    }
    let usage = r#""usage":{"input_tokens":100,"output_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}"#;
    let with = |other: &str| text("m", "x").replace(usage, other);
    for other in [r#""usage":null"#, r#""usage":17"#, r#""other":1"#, r#""usage":{}"#] {
        check(&[init(), with(other)], Cost::Unknown);
    }
    // Some gateways leave out the cache, and the client passes that on.
    let bare = r#""usage":{"input_tokens":100,"output_tokens":1}"#;
    check(&[init(), with(bare)], estimated(2 * SMALL));
    for odd in ["7.5", r#""7""#, "-1"] {
        let cached = format!(
            r#""usage":{{"input_tokens":100,"output_tokens":1,"cache_read_input_tokens":{odd}}}"#
        );
        check(&[init(), with(&cached)], at_least(2 * SMALL));
    }
}

#[test]
fn only_lines_of_one_message_are_merged() {
    check(&[init(), text("m", "a"), text("m", "b")], estimated(2 * SMALL));
    check(&[init(), text("a", "a"), text("b", "b")], estimated(3 * SMALL));
    // Without an id, each line counts on its own.
    check(&[init(), text("", "a"), text("", "b")], estimated(3 * SMALL));
    let odd = |line: &str| line.replace(r#""id":"m""#, r#""id":17"#);
    check(&[init(), odd(&text("m", "a")), odd(&text("m", "b"))], estimated(3 * SMALL));
    // One id in two conversations, in two rounds, and for two requests.
    check(&[init(), text("m", "a"), of_agent("c", &text("m", "b"))], estimated(4 * SMALL));
    let rounds = [init(), text("m", "a"), success("x"), init(), text("m", "b")];
    check(&rounds, estimated(REPORT + 2 * SMALL));
    let requests = [init(), reading("m", "100"), reading("m", "300")];
    check(&requests, estimated(SMALL + 302 + 302));
}

#[test]
fn more_output_never_lowers_the_known_cost() {
    let lines = [
        init(),
        text("m", "a"),
        foreign(&text("n", "b")),
        of_agent("c", &reading("s", "5000")),
        reading("m", "1.5"),
        text("", "x"),
        sample::user(),
    ];
    let known = |cost: Cost| match cost {
        Cost::Free | Cost::Unknown => Micros::ZERO,
        Cost::Reported(amount) | Cost::Estimated(amount) | Cost::AtLeast(amount) => amount,
    };
    let costs: Vec<Micros> = (0..=lines.len()).map(|n| known(after(&lines[..n]))).collect();
    assert!(costs.is_sorted(), "{costs:?}");
}
