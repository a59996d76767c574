use serde_json::json;

use super::super::sample::{self, THREAD};
use super::*;

fn read(text: &str) -> Entry {
    parse_entry(text.as_bytes())
}

#[test]
fn requests_errors_and_limits_are_read() {
    let check = |text: &str, expected: Entry| assert_eq!(read(text), expected, "{text}");
    let began = sample::began("a");
    check(&began[0], Entry::Begins { turn: "a".into() });
    check(&began[1], Entry::Model("gpt-5.5".into()));
    check(&sample::calls(), Entry::Calls);
    let usage = Some(Usage { input: 800, output: 100, cache_write: 0, cache_read: 200 });
    check(&sample::used("a"), Entry::Used { root_turn: Some("a".into()), usage });
    let problem = |kind: &str, status| Entry::Ends {
        error: Some(RolloutError { kind: kind.into(), status }),
    };
    check(&sample::ended(&Value::Null), Entry::Ends { error: None });
    check(&sample::ended(&json!("server_overloaded")), problem("server_overloaded", None));
    let with_status = json!({ "http_connection_failed": { "http_status_code": 401 } });
    check(&sample::ended(&with_status), problem("http_connection_failed", Some(401)));
    let without = json!({ "response_stream_disconnected": { "http_status_code": null } });
    check(&sample::ended(&without), problem("response_stream_disconnected", None));
    check(&sample::limits(100, 99), Entry::Limited { resets_at: 1000 });
    check(&sample::limits(100, 100), Entry::Limited { resets_at: 2000 });
    check(&sample::limits(99, 0), Entry::Other);
    check("half a li", Entry::Unreadable);
    check(r#"{"type":"session_meta","payload":17}"#, Entry::Other);
}

#[test]
fn tokens_in_the_cache_are_counted_once() {
    let check = |value: Value, [input, output, cache_write, cache_read]: [u64; 4]| {
        assert_eq!(parse_usage(&value), Some(Usage { input, output, cache_write, cache_read }));
    };
    let all = json!({ "input_tokens": 100, "cached_input_tokens": 30, "cache_write_input_tokens": 20, "output_tokens": 7 });
    check(all, [50, 7, 20, 30]);
    let much = json!({ "input_tokens": 10, "cached_input_tokens": 30, "output_tokens": 0 });
    check(much, [10, 0, 0, 30]);
    let huge = json!({ "input_tokens": 10, "cached_input_tokens": u64::MAX, "cache_write_input_tokens": 2, "output_tokens": 0 });
    check(huge, [10, 0, 2, u64::MAX]);
}

// proves: S36
#[test]
fn unreadable_token_counts_are_not_zero() {
    let check = |value: Value| assert_eq!(parse_usage(&value), None, "{value}");
    check(json!({ "input_tokens": "many", "output_tokens": 1 }));
    check(json!({ "input_tokens": 10.5, "output_tokens": 1 }));
    check(json!({ "input_tokens": 10, "output_tokens": -1 }));
    check(json!({ "input_tokens": 10 }));
    check(json!({ "input_tokens": 10, "output_tokens": 1, "cached_input_tokens": 2.0 }));
    check(json!({}));
    check(Value::Null);
}

#[test]
fn last_record_counts_once_when_complete() {
    let home = tempfile::tempdir().unwrap();
    let mut rollout = Rollout::new(home.path(), THREAD);
    let mut check = |text: &str, expected: &[Entry]| {
        sample::write_raw(home.path(), THREAD, text);
        let mut found = Vec::new();
        rollout.read_new(&mut |entry| found.push(entry));
        found.retain(|entry| *entry != Entry::Other);
        assert_eq!(found, expected, "{text}");
    };
    let (calls, compacted) = (sample::calls(), sample::compacted());
    check(&calls[..calls.len() - 1], &[]);
    check(&calls, &[Entry::Calls]);
    check(&format!("{calls}\n"), &[]);
    check(&format!("{calls}\n{compacted}"), &[Entry::Compacted]);
}

#[test]
fn thread_is_found_by_day_in_id() {
    let check =
        |days: i64, expected: &str| assert_eq!(day_of(THREAD, days).as_deref(), Some(expected));
    check(0, "2026/11/15");
    check(-1, "2026/11/14");
    check(1, "2026/11/16");
    assert_eq!(day_of("", 0), None);
    assert_eq!(day_of("ffffffff-ffff-7fff-8000-000000000000", 0), None);
}

#[test]
fn growing_rollout_is_found_and_read() {
    let home = tempfile::tempdir().unwrap();
    let mut rollout = Rollout::new(home.path(), THREAD);
    let mut check = |expected: &[Entry]| {
        let mut found = Vec::new();
        rollout.read_new(&mut |entry| found.push(entry));
        assert_eq!(found, expected);
    };
    check(&[]);
    let mut entries = vec![sample::calls()];
    sample::write(home.path(), THREAD, &entries);
    check(&[Entry::Calls]);
    check(&[]);
    entries.extend(sample::began("a"));
    sample::write(home.path(), THREAD, &entries);
    check(&[Entry::Begins { turn: "a".into() }, Entry::Model("gpt-5.5".into())]);
}

#[test]
fn too_large_rollout_is_not_read() {
    let home = tempfile::tempdir().unwrap();
    sample::write(home.path(), THREAD, &[sample::used("a")]);
    let mut rollout = Rollout::new(home.path(), THREAD);
    let told = |rollout: &mut Rollout| {
        let mut entries = 0;
        rollout.read_new(&mut |_| entries += 1);
        (entries, rollout.is_open())
    };
    assert_eq!(told(&mut rollout), (1, true));
    let file = fs::OpenOptions::new().write(true).open(rollout.find().unwrap()).unwrap();
    file.set_len(TRANSCRIPT_MAX + 1).unwrap();
    assert_eq!(told(&mut rollout), (0, false));
    assert_eq!(told(&mut rollout), (0, false));
    assert_eq!(told(&mut Rollout::new(home.path(), THREAD)), (0, false));
}
