//! Rows of a live screen.

use crate::budget::Cost;
use crate::decide::tests::play::{Play, turn, usd, workflow};
use crate::failure::TurnFailure;
use crate::run::Input;
use crate::run::stop::{Interruption, StopMode};
use crate::time::Span;

use super::*;

fn play() -> Play {
    let files = [("A.md", "text"), ("W.md", "text"), ("S.sh", "true")];
    Play::new(workflow(&files)).with(|settings| settings.max_parallel = 3).started()
}

/// Replays the story so far, with a second between two events.
fn view(play: &Play) -> RunView {
    let mut live = RunView::default();
    for (at, event) in (0..).zip(&play.story) {
        live.note(Timestamp(0) + Span::seconds(at), event);
    }
    live
}

/// Returns rows such as `main A.md #1 Working(Prompt(None)) $0.00`.
fn shown(live: &RunView) -> Vec<String> {
    let row = |(agent, row, activity): (&AgentId, &AgentRow, AgentActivity)| {
        let (state, visit) = row.place().expect("a busy agent has a place");
        format!("{agent} {state} #{visit} {activity:?} {}", row.summary.spent)
    };
    live.busy().into_iter().map(row).collect()
}

fn tally(live: &RunView) -> (usize, usize, usize) {
    let AgentCounts { running, queued, waiting, .. } = live.tally();
    (running, queued, waiting)
}

#[test]
fn every_agent_is_shown_with_its_activity() {
    let mut play = play();
    assert_eq!(shown(&view(&play)), ["main A.md #1 Working(Prompt(None)) $0.00"]);
    play.says("main", "no tag");
    assert_eq!(shown(&view(&play)), ["main A.md #1 Working(Reminder) $0.10"]);
    play.says("main", r#"<fork next="A">W</fork><fork next="A">S</fork><fork next="A">W</fork>"#);
    let seen = view(&play);
    assert_eq!(
        shown(&seen),
        [
            "main A.md #2 Working(Prompt(None)) $0.20",
            "main_w1 W.md #1 Working(Prompt(None)) $0.00",
            "main_s2 S.sh #1 Working(Script) $0.00",
        ]
    );
    assert_eq!((tally(&seen), seen.spent, seen.cap()), ((3, 1, 0), usd("0.20"), Some(usd("10"))));
    play.costs(Cost::Free).says("main_s2", "<result>x</result>");
    play.stumbles("main_w1");
    let seen = view(&play);
    let retry = "main_w1 W.md #1 Waiting(Retry(Timestamp(";
    assert!(shown(&seen).last().is_some_and(|row| row.starts_with(retry)), "{seen:?}");
    assert_eq!(tally(&seen), (2, 0, 1));
}

#[test]
fn an_agent_is_at_something_since_that_began() {
    let mut play = play();
    let since = |play: &Play| view(play).busy()[0].1.summary.since;
    let last = |play: &Play| Timestamp(0) + Span::seconds(play.story.len() as u64 - 1);
    assert_eq!(since(&play), last(&play));
    let begun = since(&play);
    play.stop(StopMode::AfterTurn);
    assert_eq!((since(&play), last(&play) > begun), (begun, true));
    let mut play = self::play();
    play.stumbles("main");
    assert_eq!(since(&play), last(&play));
}

#[test]
fn progress_belongs_to_a_turn_in_flight() {
    let mut play = play();
    let mut seen = view(&play);
    seen.see(Timestamp(77), &turn("main.1.1"), "Bash(make)");
    assert_eq!(shown(&seen), [r#"main A.md #1 Working(Seen("Bash(make)")) $0.00"#]);
    assert_eq!(seen.busy()[0].1.summary.since, Timestamp(77));
    play.stumbles("main");
    let mut late = view(&play);
    let before = shown(&late);
    late.see(Timestamp(78), &turn("main.1.1"), "Bash(make)");
    late.see(Timestamp(78), &turn("unknown.1.1"), "Bash(make)");
    assert_eq!(shown(&late), before);
}

#[test]
fn queued_agent_waits_for_its_paused_backend() {
    let mut play = play();
    let until = Some(Timestamp(0) + Span::minutes(60));
    play.fails("main", TurnFailure::Quota { until, why: "noon".into() });
    let seen = view(&play);
    let quota = r#"Waiting(Quota("claude", Timestamp(3600000)))"#;
    assert_eq!(shown(&seen), [format!("main A.md #1 {quota} $0.10")]);
    assert_eq!(tally(&seen), (0, 0, 1));
}

#[test]
fn agents_of_a_dead_owner_do_not_work() {
    let mut play = play();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork><fork next="A">W</fork>"#);
    let driven = view(&play);
    assert_eq!(tally(&driven), (3, 1, 0));
    let left = driven.without_owner();
    let AgentCounts { interrupted, stopped, .. } = left.tally();
    assert_eq!((tally(&left), interrupted, stopped), ((0, 0, 0), 3, 1));
    assert_eq!(shown(&left), [""; 0]);
    let activity: Vec<AgentActivity> =
        left.by_age().into_iter().map(|(_, row)| left.activity(row)).collect();
    assert_eq!(
        activity.iter().filter(|activity| **activity == AgentActivity::Interrupted).count(),
        3
    );
}

#[test]
fn ended_or_failed_agent_is_not_shown() {
    let mut play = play();
    play.says("main", r#"<fork next="A">W</fork>"#);
    play.fails("main_w1", TurnFailure::Task { why: "no".into() });
    assert_eq!(shown(&view(&play)), ["main A.md #2 Working(Prompt(None)) $0.10"]);
    play.stop(StopMode::AfterTurn);
    assert_eq!(view(&play).course, Course::Stopping);
    play.says("main", "<result>x</result>");
    let seen = view(&play);
    assert_eq!((shown(&seen), tally(&seen)), (vec![], (0, 0, 0)));
}

#[test]
fn cancelled_worker_is_not_done() {
    let mut play = play();
    let forks = "<fork>W</fork>".repeat(3);
    play.says("main", &format!(r#"{forks}<goto wait="done">A</goto>"#));
    play.says("main_w1", "<result>x</result>");
    play.fails("main_w2", TurnFailure::Task { why: "no".into() });
    let (agent, by, key) = ("main_w3".into(), "ada".into(), "c1".into());
    play.feed(vec![Input::CancelAgent { agent, by, key }]);
    let counts = |play: &Play| view(play).workers();
    let (done, failed, total) = (1, 1, 3);
    // Its turn is still in flight.
    assert_eq!(counts(&play), WorkerCounts { done, failed, cancelled: 0, total });
    let cut = play.interruptions(Interruption::Stop, false);
    play.feed(cut);
    assert_eq!(counts(&play), WorkerCounts { done, failed, cancelled: 1, total });
    let mut ledger = Ledger::default();
    for (at, event) in (0..).zip(&play.story) {
        ledger.note(Timestamp(at), event);
    }
    assert_eq!(RunView::of(&play.run, &ledger).workers(), counts(&play));
}

#[test]
fn no_agent_of_a_stopped_run_works() {
    let mut play = play();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork><fork next="A">W</fork>"#);
    play.halt();
    play.stop(StopMode::Now);
    let seen = view(&play);
    let doing: Vec<AgentActivity> =
        seen.by_age().into_iter().map(|(_, row)| seen.activity(row)).collect();
    assert_eq!(
        doing,
        [
            AgentActivity::Stopped,
            AgentActivity::Stopped,
            AgentActivity::Stopped,
            AgentActivity::Stopped
        ]
    );
    assert_eq!((tally(&seen), seen.tally().stopped), ((0, 0, 0), 4));
}

#[test]
fn queued_agent_waits_for_a_higher_budget() {
    let mut play = Play::new(workflow(&[("A.md", "text")]));
    play = play.with(|settings| settings.budget = Some(usd("0.10"))).started();
    play.says("main", "<goto>A</goto>");
    let seen = view(&play);
    assert_eq!(seen.course, Course::Ended);
    let (_, row) = seen.agents().next().unwrap();
    assert_eq!(
        (seen.activity(row), tally(&seen)),
        (AgentActivity::Waiting(Wait::Budget), (0, 0, 1))
    );
}
