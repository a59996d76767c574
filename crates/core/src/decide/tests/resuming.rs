//! A run goes on.

use insta::assert_snapshot;

use super::play::{Play, prompts, turn, usd, workflow};
use crate::budget::Cost;
use crate::failure::TurnFailure;
use crate::run::{
    DiscardedCost, DiscardedTail, Event, Input, Record, Run, Settings, Step, TranscriptCost,
};
use crate::value::Value;

fn task() -> TurnFailure {
    TurnFailure::Task { why: "no".into() }
}

#[test]
fn a_failed_agent_goes_on_at_the_visit_that_failed_with_fresh_reminders_and_retries() {
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
fn a_failed_first_turn_may_have_left_a_session_behind() {
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
    // Whoever holds the conversation that it carries does not answer it.
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
fn agents_go_on_in_the_order_in_which_they_were_born() {
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
fn turns_that_are_still_in_flight_are_left_alone() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    assert_eq!(play.resume(), "resumed");
    assert_eq!(play.scene(), "Open: $0.00 spent, $10.00 reserved\nmain at A.md: runs with $10.00");
}

#[test]
fn what_waited_when_the_run_stopped_waits_on() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    play.halt();
    // The worker was first in line when main was cut off.
    let events = play.resume();
    assert!(events.contains("start main_w1.1.1 #1"), "{events}");
    assert_snapshot!(play.scene(), @"
    Open: $0.20 spent, $9.80 reserved
    main at A.md: queued
    main_w1 at W.md: runs with $9.80
    ");
}

#[test]
fn settings_of_the_resume_govern_from_here_on() {
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
fn edited_states_are_adopted_unless_an_agent_needs_one_that_is_gone() {
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
fn the_same_states_are_nothing_to_adopt() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    assert_eq!(play.feed(vec![Input::Adopt { manifest: Value::from("v1") }]), "");
}

#[test]
fn an_answer_needs_an_open_question_and_counts_once() {
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
fn a_run_with_an_open_question_waits_for_a_person() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let (ask, question) = (turn("main.1.1"), Value::from("may I?"));
    crate::run::apply(&mut play.run, &Event::Asked { ask, question, due: None });
    let cut = play.cut_off(crate::run::stop::Interruption::Crash, true);
    let events = play.feed(cut);
    assert!(events.ends_with("ended: NeedsPerson"), "{events}");
}

#[test]
fn a_question_that_nobody_answers_in_time_fails_its_agent() {
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
fn after_a_rewind_a_turn_opens_a_session_that_the_abandoned_future_never_saw() {
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
        assert_eq!(play.cut_off(crate::run::stop::Interruption::Crash, true), [], "not in flight");
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
fn a_turn_that_nothing_was_cut_away_of_is_still_in_flight_after_a_rewind() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let (before, discarded) = (play.run.scheduler.clone(), DiscardedCost::default());
    let (nonce, again, governed) = ("new".into(), Vec::new(), None);
    play.feed(vec![Input::Rewind { kept: 1, nonce, discarded, again, governed }]);
    assert_eq!(play.run.scheduler, before);
}

/// Of one record that holds the story of a play since it was kept.
fn since(play: &Play) -> Record {
    let steps = vec![Step { cause: Input::Due, events: play.story.clone() }];
    Record { seq: 2, at: play.at, steps }
}

/// What the story of a play since `kept` had cost, and which turns it ended.
fn gone_since(kept: &Run, play: &Play) -> (DiscardedCost, Vec<String>) {
    let mut abandoned = DiscardedTail::new(kept);
    abandoned.follow(&since(play));
    (abandoned.discarded(), abandoned.again().iter().map(ToString::to_string).collect())
}

fn discarded(amount: &str, unpriced: u64) -> DiscardedCost {
    DiscardedCost { amount: usd(amount), unpriced, ..DiscardedCost::default() }
}

/// The same, where this much of it was paid for the visit of `main` that is kept.
fn of_visit(paid: &str, amount: &str, unpriced: u64) -> DiscardedCost {
    DiscardedCost { visits: [("main".into(), usd(paid))].into(), ..discarded(amount, unpriced) }
}

#[test]
fn what_was_paid_in_records_that_are_cut_away_stays_paid() {
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
    assert_eq!(gone_since(&kept, &play), (expected.clone(), vec!["main.1.1".to_owned()]));
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
fn each_turn_of_records_that_are_cut_away_counts_once_whether_it_ended_or_not() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    for (amount, ended) in [("0.60", "main.1.1"), ("0.60", "main.2.1")] {
        let kept = play.run.clone();
        play.story.clear();
        // It is still in flight, and looked for when the run goes on.
        assert_eq!(gone_since(&kept, &play), (discarded("0", 0), Vec::new()));
        // It ends, and the next one is cut off.
        play.costs(Cost::Reported(usd("0.30"))).says("main", "<goto>B</goto>");
        assert_eq!(gone_since(&kept, &play), (of_visit("0.30", amount, 0), vec![ended.to_owned()]));
    }
    let kept = play.run.clone();
    play.story.clear();
    play.costs(Cost::Unknown).stumbles("main");
    play.after("1h".parse().unwrap());
    assert_eq!(
        gone_since(&kept, &play).0,
        of_visit("0.60", "0.60", 0),
        "both attempts, like the most expensive"
    );
}

#[test]
fn a_turn_that_one_cut_has_charged_is_not_charged_by_the_next_one() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let kept = play.run.clone();
    play.story.clear();
    play.costs(Cost::Reported(usd("0.30"))).says("main", "<result>x</result>");
    let first = gone_since(&kept, &play);
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
    assert_eq!(gone_since(&kept, &play), first);
}

#[test]
fn a_script_that_was_in_flight_when_its_records_are_cut_away_cost_nothing() {
    let mut play = Play::new(workflow(&[("A.sh", "true"), ("B.sh", "true")])).started();
    let kept = play.run.clone();
    play.story.clear();
    play.says("main", "<goto>B</goto>");
    assert_eq!(gone_since(&kept, &play), (DiscardedCost::default(), vec!["main.1.1".to_owned()]));
}

#[test]
fn of_records_that_nobody_vouches_for_only_what_they_cost_is_believed() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    let kept = play.run.clone();
    play.costs(Cost::Reported(usd("0.30"))).says("main", "<goto>B</goto>");
    play.story.push(Event::RunRewound {
        kept: 3,
        nonce: "other".into(),
        discarded: discarded("1", 1),
        governed: None,
    });
    let mut abandoned = DiscardedTail::new(&kept);
    // That the run has started, too: it would begin anew.
    abandoned.doubt(&since(&play));
    abandoned.miss();
    // What was in flight has no price that anybody knows.
    assert_eq!(abandoned.discarded(), of_visit("0.30", "1.30", 3));
    assert_eq!(abandoned.again(), [turn("main.1.1")]);
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
    abandoned.doubt(&since(&play));
    assert_eq!(abandoned.discarded().unpriced, u64::MAX);
    abandoned.follow(&since(&play));
    assert_eq!(abandoned.discarded().unpriced, u64::MAX);
}

/// How a record is read that is cut away.
type Read = fn(&mut DiscardedTail<'_>, &Record);

// proves: A24, A44
#[test]
fn transcripts_tell_what_records_that_are_cut_away_do_not() {
    let traced =
        |strict: bool, read: Read, [first, told]: [TranscriptCost; 2], expected: DiscardedCost| {
            let mut play = Play::new(prompts(&["A.md", "B.md"]));
            play = play.with(|s| s.strict_budget = strict).started();
            let kept = play.run.clone();
            play.story.clear();
            play.costs(Cost::Reported(usd("0.30"))).says("main", "<goto>B</goto>");
            let transcripts = [("main.1.1", first), ("main.2.1", told)];
            let transcripts = transcripts.map(|(id, told)| ((turn(id), 1), told));
            let mut abandoned = DiscardedTail::new(&kept).knowing(transcripts.into());
            read(&mut abandoned, &since(&play));
            assert_eq!(abandoned.discarded(), expected, "{strict} {told:?}");
        };
    let first = Cost::Reported(usd("0.70"));
    let check = |strict: bool, read: Read, told: Cost, expected: DiscardedCost| {
        traced(strict, read, [first.into(), told.into()], expected);
    };
    let follow: Read = |abandoned, record| abandoned.follow(record);
    let doubt: Read = |abandoned, record| abandoned.doubt(record);
    let miss: Read = |abandoned, _| abandoned.miss();
    // A record that is vouched for tells the end of the first turn, and nothing tells that of the second.
    check(false, follow, Cost::Reported(usd("2")), of_visit("0.30", "2.30", 0));
    check(false, follow, Cost::AtLeast(usd("2")), of_visit("0.30", "2.30", 1));
    check(true, follow, Cost::AtLeast(usd("2")), of_visit("0.30", "10", 0));
    // Otherwise its transcript tells it, if it tells more.
    check(false, doubt, Cost::Reported(usd("2")), of_visit("0.70", "2.70", 0));
    check(true, doubt, Cost::Unknown, of_visit("0.70", "10.40", 0));
    // The first turn is looked for when the run goes on.
    check(false, miss, Cost::Reported(usd("2")), discarded("2", 1));
    check(true, miss, Cost::Unknown, discarded("0", 2));
    // A turn that used up its share has spent it, whatever its client reports.
    let capped = |cost| TranscriptCost { cost, capped: true };
    let told = [first.into(), capped(Cost::Reported(usd("2")))];
    traced(false, follow, told, of_visit("0.30", "10", 0));
    traced(false, doubt, told, of_visit("0.70", "10.40", 0));
    let told = [capped(first), Cost::Reported(usd("2")).into()];
    traced(false, doubt, told, of_visit("10", "12", 0));
}

#[test]
fn what_governed_a_run_in_records_that_are_cut_away_governs_it_still() {
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
    let governed =
        |abandoned: &DiscardedTail<'_>| abandoned.governed().map(|settings| settings.budget);
    let mut abandoned = DiscardedTail::new(&kept);
    assert_eq!(governed(&abandoned), None);
    abandoned.follow(&since(vec![resumed(Some("2")), resumed(Some("9"))]));
    assert_eq!(governed(&abandoned), Some(Some(usd("9"))));
    abandoned.follow(&since(vec![resumed(None)]));
    assert_eq!(governed(&abandoned), Some(None));
    // Where nobody vouches for it, it may only be less.
    let settings = Settings { budget: Some(usd("3")), ..kept.settings.clone() };
    let rewound = Event::RunRewound {
        kept: 3,
        nonce: "x".into(),
        discarded: DiscardedCost::default(),
        governed: Some(Box::new(settings)),
    };
    abandoned.doubt(&since(vec![resumed(Some("4")), rewound, resumed(None)]));
    assert_eq!(governed(&abandoned), Some(Some(usd("3"))));
    let mut abandoned = DiscardedTail::new(&kept);
    abandoned.doubt(&since(vec![resumed(Some("7"))]));
    assert_eq!(governed(&abandoned), None);
}

#[test]
fn a_cut_that_keeps_what_governed_the_run_says_so_in_one_record() {
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
    assert_eq!(gone_since(&kept, &play).1, ["main_b1.1.1"]);
}

#[test]
fn an_agent_that_started_another_turn_has_ended_the_one_before() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    let kept = play.run.clone();
    play.says("main", "<goto>B</goto>");
    let is_start = |event: &Event| matches!(event, Event::TurnStarted { .. });
    play.story.retain(is_start);
    assert_eq!(play.story.len(), 2);
    assert_eq!(gone_since(&kept, &play).1, ["main.1.1"]);
    play.story.truncate(1);
    assert_eq!(gone_since(&kept, &play).1, [""; 0]);
}
