use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::sample::{self, FOLLOWED, MODEL, THREAD, USED};
use super::*;

const CHILD: &str = "01a1df23-b000-7e62-ac75-9fbb433c5c8e";

fn books(entries: &[String]) -> (TempDir, Books) {
    let home = tempfile::tempdir().unwrap();
    sample::write(home.path(), THREAD, entries);
    let mut books = Books::new(home.path(), Arc::new(Prices::default()), Past::default());
    books.add(THREAD);
    (home, books)
}

/// The cost of the answered requests.
fn answered(books: &Books) -> Cost {
    books.bill(Ending::Reported).cost()
}

fn paid(amount: u64) -> Cost {
    Cost::Estimated(Micros(amount))
}

fn turn(name: &str, entries: &[String]) -> Vec<String> {
    sample::began(name).into_iter().chain(entries.iter().cloned()).collect()
}

#[test]
fn only_the_requests_of_the_last_turn_are_counted() {
    let one = turn("a", &[sample::used("a"), sample::used("a"), sample::ended(&Value::Null)]);
    let two = turn("b", &[sample::used("b")]);
    let (_home, mut books) = books(&[one, two].concat());
    books.read_on();
    assert_eq!((answered(&books), books.is_empty()), (paid(USED), false));
    assert_eq!(books.model().as_deref(), Some(MODEL));
}

// proves: A29
#[test]
fn a_torn_last_entry_may_have_been_a_request() {
    let whole = turn("a", &[sample::used("a"), sample::used("a")]).join("\n");
    let check = |cut: usize, expected: Cost| {
        let (home, mut books) = books(&[]);
        sample::write_raw(home.path(), THREAD, &whole[..whole.len() - cut]);
        books.read_on();
        assert_eq!(answered(&books), expected, "{cut}");
    };
    check(0, paid(2 * USED));
    check(1, Cost::AtLeast(Micros(USED)));
    check(20, Cost::AtLeast(Micros(USED)));
}

#[test]
fn what_was_there_before_the_client_is_past() {
    let past =
        turn("a", &[sample::used("a"), sample::limits(100, 0), sample::ended(&json!("other"))]);
    let (home, mut books) = books(&past);
    books.close(Some(THREAD)).unwrap();
    books.read_on();
    assert_eq!((books.spent(), books.is_empty()), (Micros::ZERO, true));
    assert_eq!((books.problem(), books.limited_until()), (None, None));
    let now = turn("b", &[sample::used("b")]);
    sample::write(home.path(), THREAD, &[past, now].concat());
    books.read_on();
    assert_eq!((answered(&books), books.is_empty()), (paid(USED), false));
}

#[test]
fn all_turns_that_began_since_the_client_started_are_paid() {
    let past = turn("a", &[sample::used("a")]);
    let (home, mut books) = books(&past);
    books.close(Some(THREAD)).unwrap();
    let now = [turn("b", &[sample::used("b")]), turn("c", &[sample::used("c")])].concat();
    sample::write(home.path(), THREAD, &[past, now].concat());
    books.read_on();
    assert_eq!(answered(&books), paid(2 * USED));
}

#[test]
fn a_later_owner_knows_what_was_there_before_the_client() {
    let past = turn("a", &[sample::calls(), sample::used("a")]);
    let (home, _) = books(&past);
    let kept = || Past::kept_in(home.path().join("1.past.json"));
    let books = || Books::new(home.path(), Arc::new(Prices::default()), kept());
    books().close(Some(THREAD)).unwrap();
    let check = |entries: &[String], expected: Micros| {
        sample::write(home.path(), THREAD, entries);
        let mut books = books();
        books.add(THREAD);
        books.read_on();
        assert_eq!(books.spent(), expected);
        assert!(!books.may_be_behind());
    };
    check(&past, Micros::ZERO);
    let now = [turn("b", &[sample::used("b")]), turn("c", &[sample::used("c")])].concat();
    check(&[past, now].concat(), Micros(2 * USED));
}

// proves: A12
#[test]
fn unreadable_tokens_make_the_sum_unknown() {
    let all = sample::used("a");
    let odd = ["100.5", "100.0", "\"100\"", "-1", "1e30", "null", "true"];
    for odd in
        odd.map(|odd| all.replace("\"output_tokens\":100", &format!("\"output_tokens\":{odd}")))
    {
        let (_home, mut books) = books(&turn("a", &[sample::used("a"), odd, sample::used("a")]));
        books.read_on();
        let state = (answered(&books), books.is_empty(), books.are_open());
        assert_eq!(state, (Cost::Unknown, false, false));
    }
}

#[test]
fn a_priced_part_of_the_sum_is_at_least_charged() {
    let foreign = [
        sample::began("a")[1].replace(MODEL, "house-model"),
        sample::used("a"),
        sample::began("a")[1].clone(),
        sample::used("a"),
    ];
    let (_home, mut books) = books(&turn("a", &foreign));
    books.read_on();
    assert_eq!(answered(&books), Cost::AtLeast(Micros(USED)));
    assert!(!books.is_priced());
}

#[test]
fn requests_without_a_turn_are_of_the_current_turn() {
    let nameless = sample::used("a")
        .replace("\"root_turn_id\":\"a\",", "")
        .replace("\"turn_id\":\"any\",", "");
    assert!(!nameless.contains("turn_id"), "{nameless}");
    let (_home, mut books) = books(&turn("a", &[sample::used("a"), nameless]));
    books.read_on();
    assert_eq!(answered(&books), paid(2 * USED));
}

#[test]
fn a_damaged_entry_may_have_been_a_request() {
    let damaged = sample::used("a").replace("\"usage\"", "\"usa");
    let (_home, mut books) = books(&turn("a", &[sample::used("a"), damaged]));
    books.read_on();
    assert_eq!(answered(&books), Cost::AtLeast(Micros(USED)));
}

#[test]
fn an_agent_of_the_client_may_have_a_request_in_flight() {
    let check = |child: Option<&[String]>, ending: Ending, expected: Cost| {
        let (home, mut books) = books(&turn("b", &[sample::calls(), sample::used("b")]));
        if let Some(child) = child {
            sample::write(home.path(), CHILD, &turn("x", child));
        }
        books.add(CHILD);
        books.read_on();
        assert_eq!(books.bill(ending).cost(), expected, "{child:?}");
    };
    let (calls, used, returned) = (sample::calls(), sample::used("b"), sample::returned());
    let asking = [calls.clone(), used.clone(), returned];
    for ending in [Ending::Interrupted, Ending::Reported] {
        check(Some(&asking), ending, paid(2 * USED + FOLLOWED));
        check(Some(&[calls.clone(), used.clone()]), ending, paid(2 * USED));
        let done = [used.clone(), sample::ended(&Value::Null)];
        check(Some(&done), ending, paid(2 * USED));
        // Nothing is known about a first request, or an agent without a file.
        check(Some(&[]), ending, Cost::AtLeast(Micros(USED)));
        check(None, ending, Cost::AtLeast(Micros(USED)));
    }
}

#[test]
fn agents_that_work_for_the_turn_are_paid_by_it() {
    let (home, mut books) = books(&turn("b", &[sample::used("b")]));
    let child = [turn("x", &[sample::used("a")]), turn("y", &[sample::used("b")])].concat();
    sample::write(home.path(), CHILD, &child);
    books.add(CHILD);
    books.add(CHILD);
    books.read_on();
    assert_eq!(answered(&books), paid(2 * USED));
}

#[test]
fn a_branch_is_summed_up_by_the_model_of_its_parent() {
    let (home, mut books) = books(&[
        sample::branched(CHILD),
        sample::began("b")[0].clone(),
        sample::used("b"),
        sample::compacted(),
        sample::began("b")[1].replace(MODEL, "gpt-6.1-sol"),
        sample::used("b"),
    ]);
    sample::write(home.path(), CHILD, &turn("a", &[sample::used("a")]));
    books.read_on();
    assert_eq!(answered(&books), paid(USED + 1600 + 20 + 1000));
    assert_eq!(books.model().as_deref(), Some("gpt-6.1-sol"));
}

#[test]
fn a_model_without_a_price_makes_the_sum_unknown() {
    let foreign = turn("b", &[sample::used("b")]).join("\n").replace(MODEL, "house-model");
    let (_home, mut books) = books(&[foreign]);
    books.read_on();
    assert_eq!((answered(&books), books.is_empty()), (Cost::Unknown, false));
}

#[test]
fn a_turn_is_finishing_when_the_last_answer_called_no_tool() {
    let check = |entries: &[String], expected: bool| {
        let (_home, mut books) = books(&turn("a", entries));
        books.read_on();
        assert_eq!(books.is_finishing(), expected);
    };
    let (calls, used) = (sample::calls(), sample::used("a"));
    check(&[], false);
    check(std::slice::from_ref(&used), true);
    check(&[calls.clone(), used.clone()], false);
    let returned = sample::returned();
    check(&[calls.clone(), used.clone(), returned, used.clone()], true);
    // A model may go on without being called upon.
    check(&[used.clone(), used.clone()], false);
    check(&[used.clone(), calls.clone()], false);
    check(&[used.clone(), sample::compacted()], false);
    check(&[used.clone(), sample::compacted(), used.clone()], true);
    check(&[used, calls.clone(), calls], false);
}

#[test]
fn a_request_is_under_way_when_nothing_is_waited_for_but_the_model() {
    let check = |entries: &[String], expected: bool| {
        let (_home, mut books) = books(&turn("a", entries));
        books.read_on();
        assert_eq!(books.is_asking(), expected, "{entries:?}");
    };
    let (calls, used, returned) = (sample::calls(), sample::used("a"), sample::returned());
    let (compacted, over) = (sample::compacted(), sample::ended(&Value::Null));
    check(&[], true);
    check(std::slice::from_ref(&calls), true);
    check(std::slice::from_ref(&used), false);
    check(&[calls.clone(), used.clone()], false);
    check(&[calls.clone(), used.clone(), returned.clone()], true);
    check(&[calls.clone(), used.clone(), returned.clone(), calls.clone()], true);
    check(&[calls, used.clone(), returned, used.clone()], false);
    check(&[used.clone(), compacted.clone()], true);
    check(&[used.clone(), compacted.clone(), sample::broken_off()], true);
    check(&[used, compacted, over], false);
}

#[test]
fn a_request_that_is_broken_off_has_read_what_the_one_before_read_and_wrote() {
    let (_home, mut nothing) = books(&turn("a", &[]));
    nothing.read_on();
    assert_eq!(nothing.bill(Ending::Interrupted).cost(), Cost::Unknown);
    let asking = [sample::calls(), sample::used("a"), sample::returned()];
    let (_home, mut books) = books(&turn("a", &asking));
    books.read_on();
    assert_eq!(books.bill(Ending::Interrupted).cost(), paid(USED + FOLLOWED));
    assert_eq!(books.bill(Ending::Reported).cost(), paid(USED));
}

#[test]
fn a_tool_that_was_broken_off_leads_to_no_request() {
    let called = turn("a", &[sample::calls(), sample::used("a")]);
    let (home, mut books) = books(&called);
    books.read_on();
    books.ends();
    let broken = [sample::returned(), sample::broken_off()];
    sample::write(home.path(), THREAD, &[&called[..], &broken].concat());
    books.read_on();
    assert!(!books.is_asking());
}

#[test]
fn an_answer_whose_tokens_are_not_told_is_noticed_when_its_tool_returns() {
    let check = |entries: &[String], expected: bool| {
        let (_home, mut books) = books(&turn("a", entries));
        books.read_on();
        assert_eq!(books.lacks_tokens(), expected, "{entries:?}");
    };
    let (calls, used, returned) = (sample::calls(), sample::used("a"), sample::returned());
    check(std::slice::from_ref(&calls), false);
    check(&[calls.clone(), used.clone(), returned.clone()], false);
    check(&[calls.clone(), returned.clone()], true);
    check(&[calls, returned, used], false);
}

#[test]
fn a_thread_keeps_the_instructions_that_it_was_opened_with() {
    let (_home, books) = books(&[sample::instructed("be brief")]);
    assert!(books.was_told(THREAD, "be brief"));
    assert!(!books.was_told(THREAD, "be long"));
    assert!(!books.was_told(CHILD, "be brief"));
}

#[test]
fn an_error_and_a_limit_are_those_of_the_turn() {
    let entries = [sample::limits(100, 0), sample::ended(&json!("usage_limit_exceeded"))];
    let (_home, mut books) = books(&turn("a", &entries));
    books.read_on();
    let problem = Problem { kind: "usage_limit_exceeded".into(), status: None };
    assert_eq!(books.problem(), Some(&problem));
    assert_eq!(books.limited_until(), Some(Timestamp(1_000_000)));
    assert!(books.is_over());
}
