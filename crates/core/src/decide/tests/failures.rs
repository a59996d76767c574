//! The kinds of failure, each with its policy.

use insta::assert_snapshot;

use super::play::{Play, prompts, workflow};
use crate::failure::{Clock, TurnFailure};
use crate::run::settings::OnLostSession;
use crate::time::{Span, Timestamp};

const HOUR: Span = Span::minutes(60);

fn quota(until: Option<u64>) -> TurnFailure {
    let until = until.map(|minutes| Timestamp(0) + Span::minutes(minutes));
    TurnFailure::Quota { until, why: "limit".into() }
}

fn timeout(clock: Clock) -> TurnFailure {
    TurnFailure::Timeout { clock, after: Span::minutes(2) }
}

fn auth() -> TurnFailure {
    TurnFailure::Auth { why: "run claude login".into() }
}

fn lost() -> TurnFailure {
    TurnFailure::LostSession { session: "gone".into() }
}

#[test]
fn each_kind_of_failure_has_its_policy() {
    let check = |state: &str, failure: TurnFailure, expected: &str| {
        let mut play = Play::new(workflow(&[(state, "text"), ("B.md", "text")])).started();
        play.fails("main", failure);
        let scene = play.scene();
        let shown = scene.split_once(&format!("main at {state}: ")).map(|(_, shown)| shown);
        assert_eq!(shown, Some(expected));
    };
    let script =
        || TurnFailure::Script { status: "exit status 1".into(), stderr: "oh".into(), tag: None };
    check("A.md", TurnFailure::Transient { why: "overloaded".into() }, "retries");
    check("A.md", timeout(Clock::FirstOutput), "retries");
    check("A.md", timeout(Clock::Idle), "retries");
    check("A.md", timeout(Clock::Wall), "retries");
    check("A.md", quota(None), "queued");
    check("A.md", auth(), "queued");
    check("A.md", TurnFailure::Task { why: "no".into() }, "failed: the client reports failure: no");
    check("A.md", lost(), "failed: the client knows no session gone");
    check(
        "A.md",
        TurnFailure::OutputTooLarge { limit: 64 << 20, head: String::new(), tail: String::new() },
        "failed: output too large: more than 64 MiB",
    );
    check(
        "A.md",
        TurnFailure::NotStarted { why: "no client".into() },
        "failed: could not start: no client",
    );
    check("A.sh", script(), "failed: script: exit status 1: oh");
    check("A.sh", timeout(Clock::Wall), "failed: timed out: not done after 2m");
    check("A.sh", TurnFailure::Transient { why: "died".into() }, "failed: transient failure: died");
}

#[test]
fn transient_failure_is_retried_in_its_session() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    assert_snapshot!(play.stumbles("main"), @"
    fail main.1.1 #1 $0.10: transient failure: overloaded
    retry 1 of main.1.1
    ");
    let due = play.run.next_due().unwrap();
    assert!((Timestamp(2_000)..=Timestamp(2_500)).contains(&due), "{due:?}");
    assert_eq!(play.after(Span(due.0 - 1)), "");
    assert_snapshot!(play.after(Span(1)), @"
    queue main.1.1 again at 1: Retried
    start main.1.1 #2 with $9.90: continue main.1.1 or fresh main.1.1
    ");
}

#[test]
fn retries_are_counted_per_visit() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).with(|s| s.retries = 2).started();
    play.stumbles("main");
    play.after(HOUR);
    play.says("main", "<goto>B</goto>");
    for retries in 1..=2 {
        play.stumbles("main");
        assert_eq!(play.agent("main").visit.retries, retries);
        play.after(HOUR);
    }
    assert_snapshot!(play.stumbles("main"), @"
    fail main.2.1 #3 $0.10: transient failure: overloaded
    main fails: transient failure: overloaded
    ended: Failed
    ");
}

#[test]
fn retries_before_a_reminder_count_after_it_too() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.retries = 1).started();
    play.stumbles("main");
    play.after(HOUR);
    play.says("main", "no tag");
    assert!(play.stumbles("main").contains("main fails: transient failure: overloaded"));
}

#[test]
fn usage_limit_holds_its_backend_without_retries() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 2).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    assert_snapshot!(play.fails("main", quota(Some(60))), @"
    fail main.2.1 #1 $0.10: usage limit: limit
    hold claude: limit until 3600
    queue main.2.1 again at 4: Retried
    ");
    // The other turn in flight finishes; nothing new starts.
    assert_snapshot!(play.says("main_w1", "<goto>W</goto>"), @"
    settle main_w1.1.1 #1 $0.10: at main_w1.1.1
    main_w1 goto: at main_w1.1.1
    main_w1 enters W.md (2) as visit 2
    queue main_w1.2.1 at 5 for claude: resume main_w1.1.1
    ");
    assert_eq!((play.agent("main").visit.retries, play.run.scheduler.reserved.0), (0, 0));
    assert_eq!(play.run.next_due(), Some(Timestamp(0) + HOUR));
    assert_eq!(play.after(Span::minutes(59)), "");
    assert_snapshot!(play.after(Span::minutes(1)), @"
    release claude
    start main_w2.1.1 #1 with $4.85: fresh main_w2.1.1
    start main.2.1 #2 with $4.85: resume main.1.1
    ");
}

#[test]
fn unknown_usage_limit_is_probed_every_quarter_hour() {
    let check = |failure: TurnFailure, seconds: u64| {
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.after(Span::minutes(10));
        play.fails("main", failure);
        assert_eq!(play.run.next_due(), Some(Timestamp(0) + Span::seconds(seconds)));
    };
    check(quota(None), 25 * 60);
    check(quota(Some(30)), 30 * 60);
    // A limit that has already ended holds for half a minute all the same.
    check(quota(Some(1)), 10 * 60 + 30);
    // A limit that lasts longer than a month is probed instead.
    let month = 31 * 24 * 60;
    check(quota(Some(10 + month)), (10 + month) * 60);
    check(quota(Some(11 + month)), 25 * 60);
    let until = Some(Timestamp(u64::MAX));
    check(TurnFailure::Quota { until, why: "limit".into() }, 25 * 60);
}

#[test]
fn second_limit_report_keeps_the_known_end() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    play.fails("main", quota(Some(60)));
    play.fails("main_w1", quota(None));
    assert_eq!(play.run.next_due(), Some(Timestamp(0) + HOUR));
    play.fails("main_w2", auth());
    assert_eq!(play.run.next_due(), None);
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    play.fails("main", auth());
    assert!(play.fails("main_w1", quota(Some(60))).ends_with("ended: NeedsPerson"));
}

#[test]
fn no_wait_run_ends_at_a_usage_limit() {
    let files = [("A.md", "text"), ("RUN.sh", "true")];
    let mut play = Play::new(workflow(&files)).with(|s| s.no_wait = true).started();
    play.says("main", r#"<fork next="A">RUN</fork>"#);
    assert!(!play.fails("main", quota(Some(60))).contains("ended"));
    assert_snapshot!(play.says("main_run1", "<result>x</result>"), @r#"
    settle main_run1.1.1 #1: fresh
    main_run1 ends: "x"
    ended: NoQuota
    "#);
    // A resume before the limit is lifted ends again, or waits if it may.
    assert_snapshot!(play.resume(), @"
    resumed
    ended: NoQuota
    ");
    play.settings.no_wait = false;
    assert_snapshot!(play.resume(), @"resumed");
    assert!(play.after(HOUR).contains("start main.2.1 #2"));
    // A resume after the limit continues at once.
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.no_wait = true).started();
    assert!(play.fails("main", quota(Some(60))).ends_with("ended: NoQuota"));
    play.at = play.at + HOUR;
    assert_snapshot!(play.resume(), @"
    resumed
    release claude
    start main.1.1 #2 with $9.90: continue main.1.1 or fresh main.1.1
    ");
}

#[test]
fn missing_login_ends_the_run_until_resumed() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    assert_snapshot!(play.fails("main", auth()), @"
    fail main.1.1 #1 $0.10: not logged in: run claude login
    hold claude: run claude login
    queue main.1.1 again at 1: Retried
    ended: NeedsPerson
    ");
    assert_eq!(play.run.next_due(), None);
    assert_snapshot!(play.resume(), @"
    resumed
    release claude
    start main.1.1 #2 with $9.90: continue main.1.1 or fresh main.1.1
    ");
    assert_eq!(play.agent("main").visit.retries, 0);
}

#[test]
fn lost_session_fails_the_agent_unless_configured() {
    let lose = |how: OnLostSession| {
        let mut play = Play::new(prompts(&["A.md", "B.md"])).with(|s| s.on_lost_session = how);
        play.start();
        play.says("main", "<goto>B</goto>");
        (play.fails("main", lost()), play)
    };
    assert_snapshot!(lose(OnLostSession::Fail).0, @"
    fail main.2.1 #1 $0.10: the client knows no session gone
    main fails: the client knows no session gone
    ended: Failed
    ");
    let (events, mut play) = lose(OnLostSession::Fresh);
    assert_snapshot!(events, @"
    fail main.2.1 #1 $0.10: the client knows no session gone
    lost gone in main.2.1: fresh main.2.1/1
    queue main.2.1 again at 2: SessionLost
    start main.2.1 #2 with $9.80: fresh main.2.1/1
    ");
    // The new session is the agent's from now on.
    play.says("main", "<goto>A</goto>");
    assert_eq!(play.plan_of("main"), "resume main.2.1/1");
}

#[test]
fn resume_can_replace_a_lost_session() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    play.says("main", "<goto>B</goto>");
    play.fails("main", lost());
    play.settings.on_lost_session = OnLostSession::Fresh;
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.2.2 Revived at 2 for claude: resume main.1.1
    start main.2.2 #1 with $9.80: resume main.1.1
    ");
    let events = play.fails("main", lost());
    assert!(events.ends_with("start main.2.2 #2 with $9.70: fresh main.2.2/1"), "{events}");
}

#[test]
fn fresh_session_gets_the_body_not_a_reminder() {
    let play = Play::new(prompts(&["A.md"])).with(|s| s.on_lost_session = OnLostSession::Fresh);
    let mut play = play.started();
    play.says("main", "no tag");
    assert_snapshot!(play.fails("main", lost()), @"
    fail main.1.2 #1 $0.10: the client knows no session gone
    lost gone in main.1.2: fresh main.1.2/1
    queue main.1.3 SessionLost at 1 for claude: fresh main.1.2/1
    start main.1.3 #1 with $9.80: fresh main.1.2/1
    ");
}

#[test]
fn losing_the_opened_session_fails_the_agent() {
    let play = Play::new(prompts(&["A.md"])).with(|s| s.on_lost_session = OnLostSession::Fresh);
    let events = play.started().fails("main", lost());
    assert!(events.contains("main fails: the client knows no session gone"), "{events}");
}

#[test]
fn clock_set_back_brings_no_retry_forward() {
    let mut play = Play::new(prompts(&["A.md"]));
    play.at = Timestamp(10_000_000);
    play.start();
    play.stumbles("main");
    play.at = Timestamp(0);
    assert_eq!(play.after(Span::minutes(1)), "");
    play.at = Timestamp(10_000_000);
    assert!(play.after(Span::minutes(60)).contains("start main.1.1"));
}

#[test]
fn resume_ends_waits_of_a_wrong_clock() {
    const MONTH: Span = Span::minutes(31 * 24 * 60);
    let waits = |failure: TurnFailure, ahead: Span| {
        let mut play = Play::new(prompts(&["A.md"]));
        play.at = Timestamp(0) + MONTH + MONTH;
        play.start();
        play.fails("main", failure);
        let until = play.run.next_due().unwrap();
        play.at = Timestamp(until.0 - ahead.0);
        let goes_on = play.resume().contains("start main.1.1");
        assert_eq!(play.run.next_due().is_some(), !goes_on);
        !goes_on
    };
    let transient = || TurnFailure::Transient { why: "overloaded".into() };
    assert!(waits(transient(), Span::seconds(375)));
    assert!(!waits(transient(), Span::seconds(376)));
    assert!(waits(quota(None), MONTH));
    assert!(!waits(quota(None), Span(MONTH.0 + 1)));
    assert!(!waits(quota(None), Span(0)));
}
