use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::sample::{self, FOLLOWED, MODEL, THREAD, USED};
use super::*;

const CHILD: &str = "01a1df23-b000-7e62-ac75-9fbb433c5c8e";

fn thread_usage(entries: &[String]) -> (TempDir, ThreadUsage) {
    let home = tempfile::tempdir().unwrap();
    sample::write(home.path(), THREAD, entries);
    let mut thread_usage =
        ThreadUsage::new(home.path(), Arc::new(Prices::default()), PriorTurns::default());
    thread_usage.add_thread(THREAD);
    (home, thread_usage)
}

/// Returns the cost of the answered requests.
fn answered_cost(thread_usage: &ThreadUsage) -> Cost {
    thread_usage.known_cost(Ending::Reported).cost()
}

fn paid(amount: u64) -> Cost {
    Cost::Estimated(Micros(amount))
}

fn turn(name: &str, entries: &[String]) -> Vec<String> {
    sample::began(name).into_iter().chain(entries.iter().cloned()).collect()
}

#[test]
fn only_requests_of_last_turn_count() {
    let one = turn("a", &[sample::used("a"), sample::used("a"), sample::ended(&Value::Null)]);
    let two = turn("b", &[sample::used("b")]);
    let (_home, mut thread_usage) = thread_usage(&[one, two].concat());
    thread_usage.read_new();
    assert_eq!((answered_cost(&thread_usage), thread_usage.is_empty()), (paid(USED), false));
    assert_eq!(thread_usage.model().as_deref(), Some(MODEL));
}

// proves: A29
#[test]
fn torn_last_entry_may_be_a_request() {
    let whole = turn("a", &[sample::used("a"), sample::used("a")]).join("\n");
    let check = |cut: usize, expected: Cost| {
        let (home, mut thread_usage) = thread_usage(&[]);
        sample::write_raw(home.path(), THREAD, &whole[..whole.len() - cut]);
        thread_usage.read_new();
        assert_eq!(answered_cost(&thread_usage), expected, "{cut}");
    };
    check(0, paid(2 * USED));
    check(1, Cost::AtLeast(Micros(USED)));
    check(20, Cost::AtLeast(Micros(USED)));
}

#[test]
fn earlier_turns_of_thread_are_not_counted() {
    let prior_turns =
        turn("a", &[sample::used("a"), sample::limits(100, 0), sample::ended(&json!("other"))]);
    let (home, mut thread_usage) = thread_usage(&prior_turns);
    thread_usage.record_prior_turns(Some(THREAD)).unwrap();
    thread_usage.read_new();
    assert_eq!((thread_usage.spent(), thread_usage.is_empty()), (Micros::ZERO, true));
    assert_eq!((thread_usage.problem(), thread_usage.limited_until()), (None, None));
    let now = turn("b", &[sample::used("b")]);
    sample::write(home.path(), THREAD, &[prior_turns, now].concat());
    thread_usage.read_new();
    assert_eq!((answered_cost(&thread_usage), thread_usage.is_empty()), (paid(USED), false));
}

#[test]
fn turns_since_client_start_are_charged() {
    let prior_turns = turn("a", &[sample::used("a")]);
    let (home, mut thread_usage) = thread_usage(&prior_turns);
    thread_usage.record_prior_turns(Some(THREAD)).unwrap();
    let now = [turn("b", &[sample::used("b")]), turn("c", &[sample::used("c")])].concat();
    sample::write(home.path(), THREAD, &[prior_turns, now].concat());
    thread_usage.read_new();
    assert_eq!(answered_cost(&thread_usage), paid(2 * USED));
}

#[test]
fn later_owner_knows_the_prior_turns() {
    let prior_turns = turn("a", &[sample::calls(), sample::used("a")]);
    let (home, _) = thread_usage(&prior_turns);
    let kept = || PriorTurns::kept_in(home.path().join("1.past.json"));
    let thread_usage = || ThreadUsage::new(home.path(), Arc::new(Prices::default()), kept());
    thread_usage().record_prior_turns(Some(THREAD)).unwrap();
    let check = |entries: &[String], expected: Micros| {
        sample::write(home.path(), THREAD, entries);
        let mut thread_usage = thread_usage();
        thread_usage.add_thread(THREAD);
        thread_usage.read_new();
        assert_eq!(thread_usage.spent(), expected);
        assert!(!thread_usage.may_be_behind());
    };
    check(&prior_turns, Micros::ZERO);
    let now = [turn("b", &[sample::used("b")]), turn("c", &[sample::used("c")])].concat();
    check(&[prior_turns, now].concat(), Micros(2 * USED));
}

// proves: A12
#[test]
fn unreadable_tokens_make_the_sum_unknown() {
    let all = sample::used("a");
    let odd = ["100.5", "100.0", "\"100\"", "-1", "1e30", "null", "true"];
    for odd in
        odd.map(|odd| all.replace("\"output_tokens\":100", &format!("\"output_tokens\":{odd}")))
    {
        let (_home, mut thread_usage) =
            thread_usage(&turn("a", &[sample::used("a"), odd, sample::used("a")]));
        thread_usage.read_new();
        let state = (
            answered_cost(&thread_usage),
            thread_usage.is_empty(),
            thread_usage.has_readable_counts(),
        );
        assert_eq!(state, (Cost::Unknown, false, false));
    }
}

#[test]
fn priced_part_of_sum_is_lower_bound() {
    let foreign = [
        sample::began("a")[1].replace(MODEL, "house-model"),
        sample::used("a"),
        sample::began("a")[1].clone(),
        sample::used("a"),
    ];
    let (_home, mut thread_usage) = thread_usage(&turn("a", &foreign));
    thread_usage.read_new();
    assert_eq!(answered_cost(&thread_usage), Cost::AtLeast(Micros(USED)));
    assert!(!thread_usage.is_priced());
}

#[test]
fn requests_without_turn_belong_to_current_turn() {
    let nameless = sample::used("a")
        .replace("\"root_turn_id\":\"a\",", "")
        .replace("\"turn_id\":\"any\",", "");
    assert!(!nameless.contains("turn_id"), "{nameless}");
    let (_home, mut thread_usage) = thread_usage(&turn("a", &[sample::used("a"), nameless]));
    thread_usage.read_new();
    assert_eq!(answered_cost(&thread_usage), paid(2 * USED));
}

#[test]
fn a_damaged_entry_may_have_been_a_request() {
    let damaged = sample::used("a").replace("\"usage\"", "\"usa");
    let (_home, mut thread_usage) = thread_usage(&turn("a", &[sample::used("a"), damaged]));
    thread_usage.read_new();
    assert_eq!(answered_cost(&thread_usage), Cost::AtLeast(Micros(USED)));
}

#[test]
fn agent_may_have_an_open_request() {
    let check = |child: Option<&[String]>, ending: Ending, expected: Cost| {
        let (home, mut thread_usage) =
            thread_usage(&turn("b", &[sample::calls(), sample::used("b")]));
        if let Some(child) = child {
            sample::write(home.path(), CHILD, &turn("x", child));
        }
        thread_usage.add_thread(CHILD);
        thread_usage.read_new();
        assert_eq!(thread_usage.known_cost(ending).cost(), expected, "{child:?}");
    };
    let (calls, used, returned) = (sample::calls(), sample::used("b"), sample::returned());
    let asking = [calls.clone(), used.clone(), returned];
    for ending in [Ending::Interrupted, Ending::Reported] {
        check(Some(&asking), ending, paid(2 * USED + FOLLOWED));
        check(Some(&[calls.clone(), used.clone()]), ending, paid(2 * USED));
        let done = [used.clone(), sample::ended(&Value::Null)];
        check(Some(&done), ending, paid(2 * USED));
        // Nothing is known about a first request, or about an agent without a file.
        check(Some(&[]), ending, Cost::AtLeast(Micros(USED)));
        check(None, ending, Cost::AtLeast(Micros(USED)));
    }
}

#[test]
fn agents_of_a_turn_are_charged_to_it() {
    let (home, mut thread_usage) = thread_usage(&turn("b", &[sample::used("b")]));
    let child = [turn("x", &[sample::used("a")]), turn("y", &[sample::used("b")])].concat();
    sample::write(home.path(), CHILD, &child);
    thread_usage.add_thread(CHILD);
    thread_usage.add_thread(CHILD);
    thread_usage.read_new();
    assert_eq!(answered_cost(&thread_usage), paid(2 * USED));
}

#[test]
fn branch_is_summarised_by_model_of_parent() {
    let (home, mut thread_usage) = thread_usage(&[
        sample::branched(CHILD),
        sample::began("b")[0].clone(),
        sample::used("b"),
        sample::compacted(),
        sample::began("b")[1].replace(MODEL, "gpt-6.1-sol"),
        sample::used("b"),
    ]);
    sample::write(home.path(), CHILD, &turn("a", &[sample::used("a")]));
    thread_usage.read_new();
    assert_eq!(answered_cost(&thread_usage), paid(USED + 1600 + 20 + 1000));
    assert_eq!(thread_usage.model().as_deref(), Some("gpt-6.1-sol"));
}

#[test]
fn unpriced_model_makes_the_sum_unknown() {
    let foreign = turn("b", &[sample::used("b")]).join("\n").replace(MODEL, "house-model");
    let (_home, mut thread_usage) = thread_usage(&[foreign]);
    thread_usage.read_new();
    assert_eq!((answered_cost(&thread_usage), thread_usage.is_empty()), (Cost::Unknown, false));
}

#[test]
fn turn_finishes_when_answer_calls_no_tool() {
    let check = |entries: &[String], expected: bool| {
        let (_home, mut thread_usage) = thread_usage(&turn("a", entries));
        thread_usage.read_new();
        assert_eq!(thread_usage.is_finishing(), expected);
    };
    let (calls, used) = (sample::calls(), sample::used("a"));
    check(&[], false);
    check(std::slice::from_ref(&used), true);
    check(&[calls.clone(), used.clone()], false);
    let returned = sample::returned();
    check(&[calls.clone(), used.clone(), returned, used.clone()], true);
    // A model may continue without a tool result.
    check(&[used.clone(), used.clone()], false);
    check(&[used.clone(), calls.clone()], false);
    check(&[used.clone(), sample::compacted()], false);
    check(&[used.clone(), sample::compacted(), used.clone()], true);
    check(&[used, calls.clone(), calls], false);
}

#[test]
fn request_is_open_while_only_model_works() {
    let check = |entries: &[String], expected: bool| {
        let (_home, mut thread_usage) = thread_usage(&turn("a", entries));
        thread_usage.read_new();
        assert_eq!(thread_usage.has_open_request(), expected, "{entries:?}");
    };
    let (calls, used, returned) = (sample::calls(), sample::used("a"), sample::returned());
    let (compacted, last_turn) = (sample::compacted(), sample::ended(&Value::Null));
    check(&[], true);
    check(std::slice::from_ref(&calls), true);
    check(std::slice::from_ref(&used), false);
    check(&[calls.clone(), used.clone()], false);
    check(&[calls.clone(), used.clone(), returned.clone()], true);
    check(&[calls.clone(), used.clone(), returned.clone(), calls.clone()], true);
    check(&[calls, used.clone(), returned, used.clone()], false);
    check(&[used.clone(), compacted.clone()], true);
    check(&[used.clone(), compacted.clone(), sample::broken_off()], true);
    check(&[used, compacted, last_turn], false);
}

#[test]
fn interrupted_request_reads_the_previous_context() {
    let (_home, mut nothing) = thread_usage(&turn("a", &[]));
    nothing.read_new();
    assert_eq!(nothing.known_cost(Ending::Interrupted).cost(), Cost::Unknown);
    let asking = [sample::calls(), sample::used("a"), sample::returned()];
    let (_home, mut thread_usage) = thread_usage(&turn("a", &asking));
    thread_usage.read_new();
    assert_eq!(thread_usage.known_cost(Ending::Interrupted).cost(), paid(USED + FOLLOWED));
    assert_eq!(thread_usage.known_cost(Ending::Reported).cost(), paid(USED));
}

#[test]
fn interrupted_tool_causes_no_request() {
    let called = turn("a", &[sample::calls(), sample::used("a")]);
    let (home, mut thread_usage) = thread_usage(&called);
    thread_usage.read_new();
    thread_usage.before_end();
    let broken = [sample::returned(), sample::broken_off()];
    sample::write(home.path(), THREAD, &[&called[..], &broken].concat());
    thread_usage.read_new();
    assert!(!thread_usage.has_open_request());
}

#[test]
fn missing_tokens_are_noticed_when_tool_returns() {
    let check = |entries: &[String], expected: bool| {
        let (_home, mut thread_usage) = thread_usage(&turn("a", entries));
        thread_usage.read_new();
        assert_eq!(thread_usage.lacks_tokens(), expected, "{entries:?}");
    };
    let (calls, used, returned) = (sample::calls(), sample::used("a"), sample::returned());
    check(std::slice::from_ref(&calls), false);
    check(&[calls.clone(), used.clone(), returned.clone()], false);
    check(&[calls.clone(), returned.clone()], true);
    check(&[calls, returned, used], false);
}

#[test]
fn thread_keeps_its_first_instructions() {
    let (_home, thread_usage) = thread_usage(&[sample::instructed("be brief")]);
    assert!(thread_usage.was_instructed(THREAD, "be brief"));
    assert!(!thread_usage.was_instructed(THREAD, "be long"));
    assert!(!thread_usage.was_instructed(CHILD, "be brief"));
}

#[test]
fn error_and_limit_belong_to_the_turn() {
    let entries = [sample::limits(100, 0), sample::ended(&json!("usage_limit_exceeded"))];
    let (_home, mut thread_usage) = thread_usage(&turn("a", &entries));
    thread_usage.read_new();
    let problem = RolloutError { kind: "usage_limit_exceeded".into(), status: None };
    assert_eq!(thread_usage.problem(), Some(&problem));
    assert_eq!(thread_usage.limited_until(), Some(Timestamp(1_000_000)));
    assert!(thread_usage.is_last_turn_over());
}
