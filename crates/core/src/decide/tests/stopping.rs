//! Stop, stop after the turns in flight, cancel.

use insta::assert_snapshot;

use super::play::{Play, prompts};
use crate::failure::TurnFailure;
use crate::run::effect::Effect;
use crate::run::stop::{Interruption, StopMode, StopOrigin};
use crate::run::{Ending, Input, Phase};
use crate::time::Timestamp;

fn forked() -> Play {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 2).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    play
}

fn cancelled(play: &Play) -> Vec<String> {
    let cancelled = |effect| match effect {
        Effect::Cancel { turn, .. } => Some(turn.to_string()),
        Effect::Start(_) | Effect::Finish => None,
    };
    play.effects().into_iter().filter_map(cancelled).collect()
}

#[test]
fn stop_interrupts_turns_and_resume_continues() {
    let mut play = forked();
    assert_eq!(play.stop(StopMode::Now), "stop Now by k1");
    assert_eq!(cancelled(&play), ["main.2.1", "main_w1.1.1"]);
    let cut = play.interruptions(Interruption::Stop, false);
    assert_snapshot!(play.feed(cut), @"
    interrupted main.2.1 #1 $0.10 by Stop, 0 crashes
    interrupted main_w1.1.1 #1 $0.10 by Stop, 0 crashes
    ended: Stopped
    ");
    assert_eq!(play.effects(), [Effect::Finish]);
    assert_snapshot!(play.resume(), @"
    resumed
    queue main.2.1 again at 4: Interrupted
    queue main_w1.1.1 again at 5: Interrupted
    start main_w2.1.1 #1 with $4.85: fresh main_w2.1.1
    start main.2.1 #2 with $4.85: resume main.1.1
    ");
}

#[test]
fn turn_finishing_during_a_stop_counts() {
    let mut play = forked();
    play.stop(StopMode::Now);
    assert_snapshot!(play.says("main", "<goto>A</goto>"), @"
    settle main.2.1 #1 $0.10: at main.1.1
    main goto: at main.1.1, forks 2
    main enters A.md (3) as visit 3
    queue main.3.1 at 4 for claude: resume main.1.1
    ");
    assert_snapshot!(play.says("main_w1", "<result>x</result>"), @r#"
    settle main_w1.1.1 #1 $0.10: at main_w1.1.1
    main_w1 ends: "x"
    ended: Stopped
    "#);
    assert_snapshot!(play.scene(), @"
    Ended(Stopped): $0.30 spent
    main at A.md: queued
    main_w2 at W.md: queued
    ");
}

#[test]
fn a_stop_after_the_turn_drains() {
    let mut play = forked();
    play.stop(StopMode::AfterTurn);
    assert_eq!(cancelled(&play), Vec::<String>::new());
    assert!(!play.says("main", "no tag").contains("start"));
    assert!(play.says("main_w1", "<result>x</result>").ends_with("ended: Stopped"));
    // The reminder that was due is what a resume begins with.
    assert_snapshot!(play.resume(), @"
    resumed
    start main.2.2 #1 with $4.85: resume main.1.1
    start main_w2.1.1 #1 with $4.85: fresh main_w2.1.1
    ");
}

#[test]
fn stricter_stop_request_wins() {
    let mut play = forked();
    play.stop(StopMode::AfterTurn);
    assert_eq!(play.stop(StopMode::Now), "stop Now by k2");
    assert_eq!(cancelled(&play).len(), 2);
    assert_eq!(play.stop(StopMode::AfterTurn), "stop Now by k3");
    assert_eq!(play.stop(StopMode::Cancel), "stop Cancel by k4");
    assert_eq!(play.stop(StopMode::Now), "stop Cancel by k5");
}

#[test]
fn repeated_stop_request_changes_nothing() {
    let mut play = forked();
    let request = Input::Stop { mode: StopMode::Now, by: StopOrigin::Command, key: "key".into() };
    assert_eq!(play.feed(vec![request.clone()]), "stop Now by key");
    assert_eq!(play.feed(vec![request.clone()]), "");
    let cut = play.interruptions(Interruption::Stop, false);
    play.feed(cut);
    play.resume();
    assert_eq!(play.feed(vec![request]), "");
}

#[test]
fn stop_does_not_wait_for_retries() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.stumbles("main");
    assert_eq!(play.stop(StopMode::Now), "stop Now by k1\nended: Stopped");
    // Nothing falls due in a run that has ended.
    assert_eq!(play.run.next_due(), None);
    assert_eq!(play.after("1h".parse().unwrap()), "");
    play.resume();
    assert!(play.after("1m".parse().unwrap()).contains("start main.1.1 #2"));
}

#[test]
fn only_resumable_runs_can_be_cancelled() {
    let completed = || {
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.says("main", "<result>x</result>");
        play
    };
    let failed = || {
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.fails("main", TurnFailure::Task { why: "no".into() });
        play
    };
    let stopped = || {
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.halt();
        play
    };
    let refused = "refused: the run has already ended";
    for mode in [StopMode::Now, StopMode::AfterTurn, StopMode::Cancel] {
        assert_eq!(completed().stop(mode), refused);
    }
    assert_eq!(failed().stop(StopMode::Now), refused);
    assert_eq!(stopped().stop(StopMode::AfterTurn), refused);
    assert_eq!(failed().stop(StopMode::Cancel), "stop Cancel by k1\nended: Cancelled");
    assert_eq!(stopped().stop(StopMode::Cancel), "stop Cancel by k2\nended: Cancelled");
}

#[test]
fn waiting_run_without_owner_can_be_stopped() {
    let play = || Play::new(prompts(&["A.md"])).with(|s| s.no_wait = true).started();
    let sleeping = || {
        let mut play = play();
        play.says("main", r#"<goto after="5m">A</goto>"#);
        play
    };
    let ended_by = |failure| {
        let mut play = play();
        play.fails("main", failure);
        play
    };
    let why = || "why".to_owned();
    let quota = TurnFailure::Quota { until: Some(Timestamp(300_000)), why: why() };
    let table = [
        (Ending::Sleeping, sleeping()),
        (Ending::NoQuota, ended_by(quota)),
        (Ending::NeedsPerson, ended_by(TurnFailure::Auth { why: why() })),
        (Ending::Environment, ended_by(TurnFailure::Environment { why: why() })),
    ];
    for (ending, mut play) in table {
        assert_eq!(play.run.phase, Phase::Ended(ending));
        assert_eq!(play.stop(StopMode::AfterTurn), "stop AfterTurn by k1\nended: Stopped");
        assert_eq!(play.stop(StopMode::Now), "refused: the run has already ended", "{ending:?}");
    }
    let mut play = sleeping();
    assert_eq!(play.stop(StopMode::Now), "stop Now by k1\nended: Stopped");
    // Its wait is kept.
    assert_eq!(play.resume(), "resumed\nended: Sleeping");
}

#[test]
fn a_cancelled_run_is_over_for_good() {
    let mut play = forked();
    play.stop(StopMode::Cancel);
    assert_eq!(cancelled(&play).len(), 2);
    let cut = play.interruptions(Interruption::Stop, false);
    assert!(play.feed(cut).ends_with("ended: Cancelled"));
    assert_eq!(play.resume(), "refused: the run has already ended");
    assert_eq!(play.stop(StopMode::Cancel), "refused: the run has already ended");
    assert_eq!(play.adopt(prompts(&["A.md", "W.md"])), "refused: the run has already ended");
}

#[test]
fn a_crash_does_not_undo_a_cancel() {
    let mut play = forked();
    play.stop(StopMode::Cancel);
    assert_snapshot!(play.crashes(false), @"
    interrupted main.2.1 #1 $0.10 by Crash, 1 crashes
    interrupted main_w1.1.1 #1 $0.10 by Crash, 1 crashes
    ended: Cancelled
    refused: the run has already ended
    ");
}

#[test]
fn run_starts_exactly_once() {
    let mut play = Play::new(prompts(&["A.md"]));
    assert_eq!(play.stop(StopMode::Cancel), "refused: the run has not started");
    assert_eq!(play.resume(), "refused: the run has not started");
    assert_eq!(play.after("1m".parse().unwrap()), "refused: the run has not started");
    play.start();
    assert_eq!(play.start(), "refused: the run has already started");
}

#[test]
fn run_completing_during_a_stop_is_completed() {
    for mode in [StopMode::AfterTurn, StopMode::Now] {
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.stop(mode);
        assert!(play.says("main", "<result>done</result>").ends_with("ended: Completed"));
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.stop(mode);
        let no = TurnFailure::Task { why: "no".into() };
        assert!(play.fails("main", no).ends_with("ended: Failed"));
    }
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.stop(StopMode::Cancel);
    assert!(play.says("main", "<result>done</result>").ends_with("ended: Cancelled"));
}
