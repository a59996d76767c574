use raymond_core::prices::Price;

use super::super::line::{self, Line};
use super::super::sample;
use super::*;

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
    let mut spending = Spending::default();
    for text in lines {
        match line::read(text) {
            Line::Init(_) => spending.begun(),
            Line::Assistant(line) => spending.streamed(&line.message),
            Line::Retry(_) => spending.turned_away(),
            Line::Result(result) => spending.concluded(&result),
            other => panic!("{other:?}"),
        }
    }
    spending.cost(&prices())
}

#[test]
fn the_cost_of_a_turn_is_what_its_results_report_since_the_last_one() {
    let check = |lines: &[String], expected: Cost| assert_eq!(after(lines), expected, "{lines:?}");
    let (init, hello, done) = (sample::init(), sample::text("m1", "hello"), sample::success("x"));
    let free = Cost::Reported(Micros::ZERO);
    check(&[], free);
    check(&[sample::lost("s")], free);
    check(&[init.clone(), sample::retry("401", "authentication_failed")], free);
    check(&[init.clone(), sample::api_error("529")], free);
    check(&[init.clone(), hello.clone(), done.clone()], Cost::Reported(Micros(2800)));
    let twice = [init.clone(), hello.clone(), done.clone(), init.clone(), done.clone()];
    check(&twice, Cost::Reported(Micros(5600)));
    check(&[init.clone(), sample::cut_off()], Cost::Reported(Micros(2800)));
    // The model was at work, and the client does not know what for.
    let early = sample::result("error_during_execution", sample::NO_USAGE);
    check(&[init.clone(), early.clone()], Cost::Unknown);
    check(&[init.clone(), done.clone(), init.clone(), early], Cost::Estimated(Micros(2800)));
    // A second round whose cost nobody reports.
    check(&[init.clone(), done.clone(), init.clone()], Cost::Estimated(Micros(2800)));
    let more = [init.clone(), done, init, hello];
    check(&more, Cost::Estimated(Micros(2800 + 102)));
}

#[test]
fn what_no_result_reports_is_estimated_from_what_was_streamed() {
    let check = |lines: &[String], expected: Cost| assert_eq!(after(lines), expected, "{lines:?}");
    let init = sample::init;
    check(&[init()], Cost::Unknown);
    // 100 read, 1 written.
    check(&[init(), sample::text("m1", "hello")], Cost::Estimated(Micros(102)));
    // The lines of one message say the same, and its letters count: 4000 are 1000 tokens.
    let long = "x".repeat(2000);
    let lines = [init(), sample::text("m1", &long), sample::text("m1", &long)];
    check(&lines, Cost::Estimated(Micros(100 + 2000)));
    let lines = [init(), sample::text("m1", "a"), sample::text("m2", "b")];
    check(&lines, Cost::Estimated(Micros(204)));
    let input = r#"{"command":"12345678901234567890"}"#;
    let call = format!(r#"{{"type":"tool_use","id":"t","name":"Bash","input":{input}}}"#);
    check(&[sample::block("m1", &call)], Cost::Estimated(Micros(100 + 2 * 8)));
    let thought = r#"{"type":"thinking","thinking":"1234567890"}"#;
    check(&[sample::block("m1", thought)], Cost::Estimated(Micros(100 + 2 * 3)));
    let unknown = sample::text("m1", "hello").replace("claude-opus-5-5", "someone-else");
    check(&[init(), unknown.clone()], Cost::Unknown);
    check(&[init(), sample::success("x"), unknown], Cost::Estimated(Micros(2800)));
    // A client that reports no cost of the round, or not of every model.
    let silent = sample::result("success", r#""result":"x""#);
    check(&[init(), sample::text("m1", "a"), silent], Cost::Estimated(Micros(102)));
    let partial = r#""model_usage_since_last_result":{"a":{"costUSD":1.0},"b":{}}"#;
    let partial = sample::result("success", partial);
    check(&[init(), sample::text("m1", "a"), partial], Cost::Estimated(Micros(102)));
    let negative = r#""model_usage_since_last_result":{"a":{"costUSD":-1.0}}"#;
    check(&[init(), sample::result("success", negative)], Cost::Unknown);
    let mixed = r#""model_usage_since_last_result":{"a":{"costUSD":5.0},"b":{"costUSD":-4.9}}"#;
    check(&[init(), sample::result("success", mixed)], Cost::Unknown);
    let huge = r#""model_usage_since_last_result":{"a":{"costUSD":1e308},"b":{"costUSD":1e308}}"#;
    check(&[init(), sample::result("success", huge)], Cost::Unknown);
    let nothing = sample::result("success", sample::NO_USAGE);
    check(&[init(), sample::text("m1", "a"), nothing], Cost::Estimated(Micros(102)));
}
