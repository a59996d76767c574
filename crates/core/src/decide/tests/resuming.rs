//! Resumes, adoptions, questions and rewinds.

use insta::assert_snapshot;

use super::play::{Play, prompts, turn, usd, workflow};
use crate::budget::Cost;
use crate::failure::TurnFailure;
use crate::ids::TurnAttempt;
use crate::run::{
    DiscardedCost, DiscardedTail, Event, Input, Record, RecordStep, Run, Settings, TranscriptCost,
};
use crate::value::Value;

fn task() -> TurnFailure {
    TurnFailure::Task { why: "no".into() }
}

#[test]
fn failed_agent_continues_with_reset_counters() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.retries = 1).started();
    play.stumbles("main");
    play.after("1h".parse().unwrap());
    play.says("main", "no tag");
    play.fails("main", task());
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.1.3 Revived at 2 for claude: resume main.1.1
    start main.1.3 #1 with $9.70: resume main.1.1
    ");
    let visit = &play.agent("main").visit;
    assert_eq!((visit.number, visit.reminders, visit.retries), (1, 0, 0));
    assert_eq!(play.run.failed.len(), 0);
}

#[test]
fn failed_first_turn_may_leave_a_session() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.fails("main", task());
    play.resume();
    assert_eq!(play.plan_of("main"), "continue main.1.1 or fresh main.1.1");
    // And once more: still the same session.
    play.fails("main", task());
    play.resume();
    assert_eq!(play.plan_of("main"), "continue main.1.1 or fresh main.1.1");
}

#[test]
fn a_failed_script_runs_again() {
    let mut play = Play::new(workflow(&[("A.sh", "true"), ("B.md", "text")])).started();
    play.says("main", "no tag");
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.1.2 Revived at 1 for script: carry
    start main.1.2 #1: carry
    ");
    // The backend of the carried conversation does not answer a script.
    let mut play = Play::new(workflow(&[("A.md", "text"), ("S.sh", "true")])).started();
    play.says("main", "<goto>S</goto>");
    play.says("main", "no tag");
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.2.2 Revived at 2 for script: carry
    start main.2.2 #1: carry
    ");
}

#[test]
fn agents_resume_in_order_of_birth() {
    let mut play =
        Play::new(prompts(&["A.md", "Z.md", "B.md"])).with(|s| s.max_parallel = 3).started();
    play.says("main", r#"<fork next="A">Z</fork><fork next="A">B</fork>"#);
    play.fails("main_z1", task());
    play.halt();
    assert_snapshot!(play.resume(), @"
    resumed
    queue main.2.1 again at 4: Interrupted
    revive main_z1
    queue main_z1.1.2 Revived at 5 for claude: continue main_z1.1.1 or fresh main_z1.1.1
    queue main_b2.1.1 again at 6: Interrupted
    start main.2.1 #2 with $3.20: resume main.1.1
    start main_z1.1.2 #1 with $3.20: continue main_z1.1.1 or fresh main_z1.1.1
    start main_b2.1.1 #2 with $3.20: continue main_b2.1.1 or fresh main_b2.1.1
    ");
}

#[test]
fn resume_leaves_turns_in_flight_alone() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    assert_eq!(play.resume(), "resumed");
    assert_eq!(play.scene(), "Open: $0.00 spent, $10.00 reserved\nmain at A.md: runs with $10.00");
}

#[test]
fn queued_turns_stay_queued_after_a_stop() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    play.halt();
    // The worker was first in the queue when main was interrupted.
    let events = play.resume();
    assert!(events.contains("start main_w1.1.1 #1"), "{events}");
    assert_snapshot!(play.scene(), @"
    Open: $0.20 spent, $9.80 reserved
    main at A.md: queued
    main_w1 at W.md: runs with $9.80
    ");
}

#[test]
fn resume_replaces_the_settings() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    play.halt();
    play.settings.max_parallel = 3;
    play.settings.model = Some("opus".into());
    play.resume();
    assert_eq!(play.effects().len(), 3);
    assert_eq!(play.run.settings.model.as_deref(), Some("opus"));
}

#[test]
fn a_completed_run_is_not_resumed() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.says("main", "<result>x</result>");
    assert_eq!(play.resume(), "refused: the run has already ended");
}

#[test]
fn spent_is_never_reset() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.fails("main", task());
    play.resume();
    play.fails("main", task());
    play.resume();
    assert_eq!(play.run.spent, usd("0.20"));
    assert_eq!(play.prompt().cap, Some(usd("9.80")));
}

#[test]
fn adoption_needs_every_agents_states() {
    let check = |states: &[&str], expected: &str| {
        let mut play = Play::new(prompts(&["A.md", "B.md", "C.md", "D.md"])).started();
        play.says("main", r#"<call return="C">B</call>"#);
        play.fails("main", task());
        assert_eq!(play.adopt(prompts(states)), expected, "{states:?}");
    };
    check(&["A.md", "B.md", "C.md"], "adopted v2");
    check(&["A.md", "B.md", "C.md", "NEW.md"], "adopted v2");
    check(&["B.md", "C.md"], "adopted v2");
    check(
        &["A.md", "C.md", "D.md"],
        "refused: main needs B.md, which the edited workflow does not have",
    );
    check(
        &["A.md", "B.md", "D.md"],
        "refused: main needs C.md, which the edited workflow does not have",
    );
}

#[test]
fn adopting_the_same_states_changes_nothing() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    assert_eq!(
        play.feed(vec![Input::Adopt { manifest: Value::from("v1"), changed: Vec::new() }]),
        ""
    );
}

#[test]
fn answer_needs_a_question_and_counts_once() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let answer = |key: &str| Input::Answer {
        ask: turn("main.1.1"),
        value: Value::from("yes"),
        by: "ann".into(),
        key: key.into(),
    };
    assert_eq!(play.feed(vec![answer("k")]), "refused: no question main.1.1 is open");
    let (ask, question) = (turn("main.1.1"), Value::from("may I?"));
    crate::run::apply(&mut play.run, &Event::Asked { ask, question, due: None });
    assert_eq!(play.feed(vec![answer("k")]), "answer main.1.1: yes");
    assert_eq!(play.feed(vec![answer("k")]), "");
    assert_eq!(play.feed(vec![answer("k2")]), "refused: no question main.1.1 is open");
}

#[test]
fn open_question_waits_for_a_user() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let (ask, question) = (turn("main.1.1"), Value::from("may I?"));
    crate::run::apply(&mut play.run, &Event::Asked { ask, question, due: None });
    let cut = play.interruptions(crate::run::stop::Interruption::Crash, true);
    let events = play.feed(cut);
    assert!(events.ends_with("ended: NeedsPerson"), "{events}");
}

#[test]
fn expired_question_fails_its_agent() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let (ask, question) = (turn("main.1.1"), Value::from("may I?"));
    let due = Some(play.at + "1h".parse().unwrap());
    crate::run::apply(&mut play.run, &Event::Asked { ask, question, due });
    assert_eq!(play.run.next_due(), due);
    assert_eq!(play.after("59m".parse().unwrap()), "");
    let events = play.after("1m".parse().unwrap());
    assert!(events.starts_with("main.1.1 expires\nmain fails: the question"), "{events}");
    assert_eq!(play.run.next_due(), None);
}

#[test]
fn rewound_turn_opens_a_new_session() {
    let check = |text: Option<&str>, expected: &str| {
        let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
        if let Some(text) = text {
            play.says("main", text);
        }
        let before = play.plan_of("main");
        let again = vec![play.run.scheduler.turns[&"main".into()].id.clone()];
        let discarded = DiscardedCost::default();
        let (nonce, governed) = ("new".into(), None);
        play.feed(vec![Input::Rewind { kept: 3, nonce, discarded, again, governed }]);
        assert_eq!(
            play.interruptions(crate::run::stop::Interruption::Crash, true),
            [],
            "not in flight"
        );
        play.feed(vec![play.resume_input()]);
        let plan = play.prompt().plan;
        let new = play.run.scheduler.turns[&"main".into()].id.session(&"new".into(), 0);
        let shown = play.names().plan(&plan).replace(new.as_str(), "new");
        assert_eq!(shown, expected, "{before}");
    };
    check(None, "fresh new");
    check(Some(r#"<call return="A">B</call>"#), "branch main.1.1 to new");
    check(Some("<goto>B</goto>"), "resume main.1.1");
}

#[test]
fn undiscarded_turn_stays_in_flight_after_rewind() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let (before, discarded) = (play.run.scheduler.clone(), DiscardedCost::default());
    let (nonce, again, governed) = ("new".into(), Vec::new(), None);
    play.feed(vec![Input::Rewind { kept: 1, nonce, discarded, again, governed }]);
    assert_eq!(play.run.scheduler, before);
}

/// Returns one record with everything that the play has recorded.
fn since(play: &Play) -> Record {
    let steps = vec![RecordStep { cause: Input::Due, events: play.story.clone() }];
    Record { seq: 2, at: play.at, steps }
}

/// Returns the cost of everything since `kept`, and the turns that ended.
fn cost_since(kept: &Run, play: &Play) -> (DiscardedCost, Vec<String>) {
    let mut tail = DiscardedTail::new(kept);
    tail.follow(&since(play));
    (tail.discarded(), tail.turns_to_repeat().iter().map(ToString::to_string).collect())
}

fn discarded(amount: &str, unpriced: u64) -> DiscardedCost {
    DiscardedCost { amount: usd(amount), unpriced, ..DiscardedCost::default() }
}

/// Returns a cost, with the part `paid` that counts for the kept visit of `main`.
fn with_visit(paid: &str, amount: &str, unpriced: u64) -> DiscardedCost {
    DiscardedCost { visits: [("main".into(), usd(paid))].into(), ..discarded(amount, unpriced) }
}

#[test]
fn discarded_costs_stay_paid() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let kept = play.run.clone();
    play.story.clear();
    play.costs(Cost::Unknown).stumbles("main");
    play.after("1h".parse().unwrap());
    play.costs(Cost::Reported(usd("0.30"))).says("main", "no tag");
    play.fails("main", task());
    play.story.push(Event::RunRewound {
        kept: 3,
        nonce: "old".into(),
        discarded: discarded("1", 1),
        governed: None,
    });
    let visits = [("main".into(), play.run.spent)].into();
    let expected = DiscardedCost { amount: play.run.spent.plus(usd("1")), unpriced: 2, visits };
    assert_eq!(cost_since(&kept, &play), (expected.clone(), vec!["main.1.1".to_owned()]));
    play.run = kept;
    let (nonce, again) = ("new".into(), vec![turn("main.1.1")]);
    play.feed(vec![Input::Rewind {
        kept: 1,
        nonce,
        discarded: expected.clone(),
        again,
        governed: None,
    }]);
    assert_eq!((play.run.spent, play.run.unpriced), (expected.amount, expected.unpriced));
    assert_eq!(play.run.agents[&"main".into()].visit.spent, expected.visits[&"main".into()]);
}

#[test]
fn every_discarded_turn_counts_once() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    for (amount, ended) in [("0.60", "main.1.1"), ("0.60", "main.2.1")] {
        let kept = play.run.clone();
        play.story.clear();
        // It is still in flight, and the next owner looks for it.
        assert_eq!(cost_since(&kept, &play), (discarded("0", 0), Vec::new()));
        // It ends, and the next turn is interrupted.
        play.costs(Cost::Reported(usd("0.30"))).says("main", "<goto>B</goto>");
        assert_eq!(
            cost_since(&kept, &play),
            (with_visit("0.30", amount, 0), vec![ended.to_owned()])
        );
    }
    let kept = play.run.clone();
    play.story.clear();
    play.costs(Cost::Unknown).stumbles("main");
    play.after("1h".parse().unwrap());
    assert_eq!(
        cost_since(&kept, &play).0,
        with_visit("0.60", "0.60", 0),
        "both attempts, like the most expensive"
    );
}

#[test]
fn second_rewind_charges_no_turn_twice() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let kept = play.run.clone();
    play.story.clear();
    play.costs(Cost::Reported(usd("0.30"))).says("main", "<result>x</result>");
    let first = cost_since(&kept, &play);
    play.run = kept.clone();
    play.story.clear();
    let again = vec![turn("main.1.1")];
    play.feed(vec![Input::Rewind {
        kept: 1,
        nonce: "new".into(),
        discarded: first.0.clone(),
        again,
        governed: None,
    }]);
    assert_eq!(cost_since(&kept, &play), first);
}

#[test]
fn discarded_script_in_flight_costs_nothing() {
    let mut play = Play::new(workflow(&[("A.sh", "true"), ("B.sh", "true")])).started();
    let kept = play.run.clone();
    play.story.clear();
    play.says("main", "<goto>B</goto>");
    assert_eq!(cost_since(&kept, &play), (DiscardedCost::default(), vec!["main.1.1".to_owned()]));
}

#[test]
fn only_costs_of_damaged_records_count() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    let kept = play.run.clone();
    play.costs(Cost::Reported(usd("0.30"))).says("main", "<goto>B</goto>");
    play.story.push(Event::RunRewound {
        kept: 3,
        nonce: "other".into(),
        discarded: discarded("1", 1),
        governed: None,
    });
    let mut tail = DiscardedTail::new(&kept);
    // Without the start the run would begin again.
    tail.read_untrusted(&since(&play));
    tail.count_unreadable();
    // The turn in flight has no known price.
    assert_eq!(tail.discarded(), with_visit("0.30", "1.30", 3));
    assert_eq!(tail.turns_to_repeat(), [turn("main.1.1")]);
    let most = Event::RunRewound {
        kept: 3,
        nonce: "x".into(),
        discarded: DiscardedCost {
            amount: usd("1"),
            unpriced: u64::MAX,
            ..DiscardedCost::default()
        },
        governed: None,
    };
    play.story = vec![most];
    tail.read_untrusted(&since(&play));
    assert_eq!(tail.discarded().unpriced, u64::MAX);
    tail.follow(&since(&play));
    assert_eq!(tail.discarded().unpriced, u64::MAX);
}

/// The ways to read a discarded record.
type Read = fn(&mut DiscardedTail<'_>, &Record);

// proves: A24, A44
#[test]
fn transcripts_price_discarded_turns_without_end() {
    let traced = |strict: bool,
                  read: Read,
                  [first, reported]: [TranscriptCost; 2],
                  expected: DiscardedCost| {
        let mut play = Play::new(prompts(&["A.md", "B.md"]));
        play = play.with(|s| s.strict_budget = strict).started();
        let kept = play.run.clone();
        play.story.clear();
        play.costs(Cost::Reported(usd("0.30"))).says("main", "<goto>B</goto>");
        let transcripts = [("main.1.1", first), ("main.2.1", reported)];
        let transcripts =
            transcripts.map(|(id, reported)| (TurnAttempt { turn: turn(id), number: 1 }, reported));
        let mut tail = DiscardedTail::new(&kept).with_transcript_costs(transcripts.into());
        read(&mut tail, &since(&play));
        assert_eq!(tail.discarded(), expected, "{strict} {reported:?}");
    };
    let first = Cost::Reported(usd("0.70"));
    let check = |strict: bool, read: Read, reported: Cost, expected: DiscardedCost| {
        traced(strict, read, [first.into(), reported.into()], expected);
    };
    let follow: Read = |tail, record| tail.follow(record);
    let untrusted: Read = |tail, record| tail.read_untrusted(record);
    let unreadable: Read = |tail, _| tail.count_unreadable();
    // An intact record ends the first turn; no record ends the second.
    check(false, follow, Cost::Reported(usd("2")), with_visit("0.30", "2.30", 0));
    check(false, follow, Cost::AtLeast(usd("2")), with_visit("0.30", "2.30", 1));
    check(true, follow, Cost::AtLeast(usd("2")), with_visit("0.30", "10", 0));
    // Otherwise the transcript's cost counts, if it is higher.
    check(false, untrusted, Cost::Reported(usd("2")), with_visit("0.70", "2.70", 0));
    check(true, untrusted, Cost::Unknown, with_visit("0.70", "10.40", 0));
    // The next owner looks for the first turn.
    check(false, unreadable, Cost::Reported(usd("2")), discarded("2", 1));
    check(true, unreadable, Cost::Unknown, discarded("0", 2));
    // A turn that used up its share has spent it, even if its client reports less.
    let capped = |cost| TranscriptCost { cost, capped: true };
    let reported = [first.into(), capped(Cost::Reported(usd("2")))];
    traced(false, follow, reported, with_visit("0.30", "10", 0));
    traced(false, untrusted, reported, with_visit("0.70", "10.40", 0));
    let reported = [capped(first), Cost::Reported(usd("2")).into()];
    traced(false, untrusted, reported, with_visit("10", "12", 0));
}

#[test]
fn rewind_keeps_the_last_settings() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = Some(usd("5"))).started();
    let kept = play.run.clone();
    let resumed = |budget: Option<&str>| {
        let settings = Settings { budget: budget.map(usd), ..kept.settings.clone() };
        Event::RunResumed { settings: Box::new(settings) }
    };
    let mut since = |events: Vec<Event>| {
        play.story = events;
        since(&play)
    };
    let governed = |tail: &DiscardedTail<'_>| tail.governed().map(|settings| settings.budget);
    let mut tail = DiscardedTail::new(&kept);
    assert_eq!(governed(&tail), None);
    tail.follow(&since(vec![resumed(Some("2")), resumed(Some("9"))]));
    assert_eq!(governed(&tail), Some(Some(usd("9"))));
    tail.follow(&since(vec![resumed(None)]));
    assert_eq!(governed(&tail), Some(None));
    // Damaged records may only lower the cap.
    let settings = Settings { budget: Some(usd("3")), ..kept.settings.clone() };
    let rewound = Event::RunRewound {
        kept: 3,
        nonce: "x".into(),
        discarded: DiscardedCost::default(),
        governed: Some(Box::new(settings)),
    };
    tail.read_untrusted(&since(vec![resumed(Some("4")), rewound, resumed(None)]));
    assert_eq!(governed(&tail), Some(Some(usd("3"))));
    let mut tail = DiscardedTail::new(&kept);
    tail.read_untrusted(&since(vec![resumed(Some("7"))]));
    assert_eq!(governed(&tail), None);
}

#[test]
fn rewind_records_kept_settings_once() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let settings = Settings { budget: Some(usd("2")), ..play.run.settings.clone() };
    let (nonce, discarded, again) = ("new".into(), DiscardedCost::default(), Vec::new());
    let governed = Some(Box::new(settings.clone()));
    play.feed(vec![Input::Rewind { kept: 1, nonce, discarded, again, governed }]);
    assert_eq!(play.run.settings, settings);
}

#[test]
fn only_the_turn_that_ended_is_done_again() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    play.says("main", r#"<fork next="A">B</fork>"#);
    let kept = play.run.clone();
    play.story.clear();
    play.says("main_b1", "<result>x</result>");
    assert_eq!(cost_since(&kept, &play).1, ["main_b1.1.1"]);
}

#[test]
fn starting_another_turn_ends_the_earlier_one() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    let kept = play.run.clone();
    play.says("main", "<goto>B</goto>");
    let is_start = |event: &Event| matches!(event, Event::TurnStarted { .. });
    play.story.retain(is_start);
    assert_eq!(play.story.len(), 2);
    assert_eq!(cost_since(&kept, &play).1, ["main.1.1"]);
    play.story.truncate(1);
    assert_eq!(cost_since(&kept, &play).1, [""; 0]);
}
