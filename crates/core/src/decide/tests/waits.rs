//! `after` and `at`: parked agents.

use insta::assert_snapshot;

use super::play::{Play, prompts, usd, workflow};
use crate::agent::{AgentStatus, Parked};
use crate::decide::Refusal;
use crate::decide::decide;
use crate::failure::TurnFailure;
use crate::protocol::Tag;
use crate::run::input::Resume;
use crate::run::settings::Pinning;
use crate::run::stop::StopMode;
use crate::run::{Ending, Input, Phase};
use crate::time::{Span, Timestamp};
use crate::view::status::{OwnerState, Status, Waiting, status};

const AFTER: &str = r#"<goto after="5m" input="x">B</goto>"#;

/// Two prompts and a script.
fn play() -> Play {
    Play::new(workflow(&[("A.md", "a"), ("B.md", "b"), ("S.sh", "s")])).started()
}

fn waiting() -> Play {
    let mut play = play();
    play.says("main", AFTER);
    play
}

#[test]
fn agent_is_parked_until_the_time() {
    let mut play = play();
    assert_snapshot!(play.says("main", AFTER), @"
    settle main.1.1 #1 $0.10: at main.1.1
    main waits until 300s to enter B.md
    ");
    assert_eq!(play.run.next_due(), Some(Timestamp(300_000)));
    assert_eq!((play.run.parked, play.run.live), (1, 1));
    assert_snapshot!(play.scene(), @"
    Open: $0.10 spent
    main at A.md: parked until 300s
    ");
    assert_eq!(play.after(Span(299_999)), "", "a timer never fires early");
    assert_snapshot!(play.after(Span(1)), @r#"
    main goto: at main.1.1
    main enters B.md (1) as visit 2 with "x"
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
    assert_eq!((play.run.parked, play.run.next_due()), (0, None));
}

#[test]
fn reset_waits_and_then_begins_a_conversation() {
    let mut play = play();
    play.says("main", r#"<reset at="1970-01-01T00:10:00Z" cd="sub">B</reset>"#);
    assert_snapshot!(play.after(Span::minutes(11)), @"
    main reset: fresh, in /home/sub
    main enters B.md (1) as visit 2
    queue main.2.1 at 1 for claude: fresh main.2.1
    start main.2.1 #1 with $9.90: fresh main.2.1
    ");
    assert_eq!(play.agent("main").cwd, "/home/sub");
}

#[test]
fn past_time_is_due_at_once() {
    let mut play = play();
    play.at = Timestamp(5_000);
    assert_snapshot!(play.says("main", r#"<goto at="1970-01-01T00:00:05Z">B</goto>"#), @"
    settle main.1.1 #1 $0.10: at main.1.1
    main goto: at main.1.1
    main enters B.md (1) as visit 2
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
}

#[test]
fn faults_are_reported_at_once() {
    let check = |text: &str, expected: &str| {
        let mut play = Play::new(prompts(&["A.md", "B.md"])).with(|s| s.reminders = 1).started();
        let events = play.says("main", text);
        assert!(events.contains(expected), "{text}: {events}");
        assert_eq!(play.run.parked, 0, "{text}");
    };
    check(r#"<goto after="5m">X</goto>"#, "<goto>: there is no state \"X\"");
    check(r#"<reset after="5m" cd="none">B</reset>"#, "<reset>: no directory \"none\"");
    check(
        r#"<goto at="1971-02-01T00:00:00Z">B</goto>"#,
        "malformed <goto>: `at` must be at most 366 days ahead",
    );
    check(
        r#"<goto after="5">B</goto>"#,
        "malformed <goto>: `after`: \"5\" is not a duration such as 90s, 10m, 2h or 7d",
    );
    check(r#"<fork after="5m" next="A">B</fork>"#, "`after` is only valid on goto and reset");
}

#[test]
fn policy_is_checked_at_once() {
    let only = "---\nallowed_targets: { goto: [A] }\n---\na";
    let mut play = Play::new(workflow(&[("A.md", only), ("B.md", "b")])).started();
    assert_snapshot!(play.says("main", AFTER), @r#"
    settle main.1.1 #1 $0.10: at main.1.1
    remind main (1): <goto> to "B.md" is not allowed here
    queue main.1.2 reminder at 0 for claude: resume main.1.1
    start main.1.2 #1 with $9.90: resume main.1.1
    "#);
}

#[test]
fn limits_count_when_the_wait_is_over() {
    let limited = "---\nmax_visits: 1\nthen: C\n---\nb";
    let mut play =
        Play::new(workflow(&[("A.md", "a"), ("B.md", limited), ("C.md", "c")])).started();
    play.says("main", "<goto>B</goto>");
    play.says("main", AFTER);
    assert_snapshot!(play.after(Span::minutes(5)), @r#"
    main goto: at main.1.1, instead of B.md
    main enters C.md (1) as visit 3 with "x"
    queue main.3.1 at 2 for claude: resume main.1.1
    start main.3.1 #1 with $9.80: resume main.1.1
    "#);

    let limited = "---\nmax_visits: 1\n---\nb";
    let mut play = Play::new(workflow(&[("A.md", "a"), ("B.md", limited)])).started();
    play.says("main", "<goto>B</goto>");
    play.says("main", AFTER);
    assert_snapshot!(play.after(Span::minutes(5)), @"
    main fails: B.md reached its limit of 1 visit and has no `then`, kept
    ended: Failed
    ");
    // The wait is over: a resume with a higher limit takes the transition at once.
    play.adopt(prompts(&["A.md", "B.md"]));
    assert_snapshot!(play.resume(), @r#"
    resumed
    revive main
    main goto: at main.1.1
    main enters B.md (2) as visit 3 with "x"
    queue main.3.1 at 2 for claude: resume main.1.1
    start main.3.1 #1 with $9.80: resume main.1.1
    "#);
}

#[test]
fn workers_start_while_their_parent_waits() {
    let mut play = play();
    assert_snapshot!(
        play.says("main", r#"<fork>S</fork><fork>A</fork><goto after="5m">B</goto>"#), @"
    settle main.1.1 #1 $0.10: at main.1.1
    main waits until 300s to enter B.md, forks 2
    spawn main_s1 in /home
    main_s1 enters S.sh (1) as visit 1
    queue main_s1.1.1 at 1 for script: carry
    spawn main_a2 in /home
    main_a2 enters A.md (1) as visit 1
    queue main_a2.1.1 at 2 for claude: fresh main_a2.1.1
    start main_s1.1.1 #1: carry
    start main_a2.1.1 #1 with $4.95: fresh main_a2.1.1
    ");
    assert_snapshot!(play.scene(), @"
    Open: $0.10 spent, $4.95 reserved
    main at A.md: parked until 300s
    main_s1 at S.sh: runs
    main_a2 at A.md: runs with $4.95
    ");
    play.says("main_s1", "<result>s</result>");
    play.says("main_a2", "<result>a</result>");
    assert_snapshot!(play.after(Span::minutes(5)), @"
    main goto: at main.1.1, forks 2
    main enters B.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    start main.2.1 #1 with $9.80: resume main.1.1
    ");
}

#[test]
fn held_fork_waits_after_it_has_room() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).with(|s| s.max_agents = 1).started();
    play.says("main", r#"<fork next="A">B</fork>"#);
    play.says("main", r#"<fork>B</fork><goto after="5m">B</goto>"#);
    play.at = Timestamp(60_000);
    assert_snapshot!(play.says("main_b1", "<result>b</result>"), @r#"
    settle main_b1.1.1 #1 $0.10: at main_b1.1.1
    main_b1 ends: "b"
    main waits until 360s to enter B.md, forks 2
    spawn main_b2 in /home
    main_b2 enters B.md (1) as visit 1
    queue main_b2.1.1 at 3 for claude: fresh main_b2.1.1
    start main_b2.1.1 #1 with $9.70: fresh main_b2.1.1
    "#);
}

#[test]
fn parked_agent_takes_no_budget_share() {
    let mut play = Play::new(prompts(&["A.md", "B.md"]))
        .with(|s| (s.budget, s.max_parallel) = (Some(usd("10")), 4))
        .started();
    play.says("main", r#"<fork>A</fork><goto after="5m">B</goto>"#);
    assert_snapshot!(play.scene(), @"
    Open: $0.10 spent, $9.90 reserved
    main at A.md: parked until 300s
    main_a1 at A.md: runs with $9.90
    ");
}

#[test]
fn script_behind_a_wait_runs_without_money() {
    let mut play = Play::new(workflow(&[("A.md", "a"), ("S.sh", "s")]))
        .with(|s| s.budget = Some(usd("0.1")))
        .started();
    play.says("main", r#"<fork>A</fork><goto after="5m">S</goto>"#);
    assert_eq!(play.run.phase, Phase::Open, "the worker has no money, but a script follows");
    play.after(Span::minutes(5));
    assert_snapshot!(play.says("main", "<result>s</result>"), @r#"
    settle main.2.1 #1: at main.1.1
    main ends: "s"
    ended: OverBudget
    "#);
}

#[test]
fn no_wait_ends_the_process_instead() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).with(|s| s.no_wait = true).started();
    play.says("main", AFTER);
    assert_eq!(play.run.phase, Phase::Ended(Ending::Sleeping));
    let waits = |owner| Status::Waiting(Waiting::Time(Timestamp(300_000)), owner);
    assert_eq!(status(&play.run, OwnerState::Gone), waits(OwnerState::Gone));
    assert_snapshot!(play.resume(), @"
    resumed
    ended: Sleeping
    ");
    play.at = Timestamp(300_000);
    assert_snapshot!(play.resume(), @r#"
    resumed
    main goto: at main.1.1
    main enters B.md (1) as visit 2 with "x"
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
}

#[test]
fn status_is_waiting_without_an_owner_too() {
    let play = waiting();
    let waits = |owner| Status::Waiting(Waiting::Time(Timestamp(300_000)), owner);
    assert_eq!(status(&play.run, OwnerState::Alive), waits(OwnerState::Alive));
    assert_eq!(status(&play.run, OwnerState::Gone), waits(OwnerState::Gone));
}

#[test]
fn resume_keeps_waits_and_ends_those_over() {
    let mut play = play();
    play.says("main", r#"<fork>S</fork><goto after="5m">B</goto>"#);
    play.says("main_s1", r#"<goto after="2m">S</goto>"#);
    play.stop(StopMode::Now);
    assert_eq!(play.run.phase, Phase::Ended(Ending::Stopped));
    assert_eq!(play.run.next_due(), None, "a run at rest wakes nobody");
    play.at = Timestamp(60_000);
    assert_snapshot!(play.resume(), @"resumed");
    play.stop(StopMode::Now);
    play.at = Timestamp(400_000);
    // In the order in which the waits are over.
    assert_snapshot!(play.resume(), @"
    resumed
    main_s1 goto: fresh
    main_s1 enters S.sh (2) as visit 2
    queue main_s1.2.1 at 2 for script: carry
    main goto: at main.1.1, forks 1
    main enters B.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    start main_s1.2.1 #1: carry
    start main.2.1 #1 with $4.95: resume main.1.1
    ");
}

#[test]
fn user_can_end_all_waits() {
    let mut play = waiting();
    assert_snapshot!(play.feed(vec![Input::Now]), @r#"
    main goto: at main.1.1
    main enters B.md (1) as visit 2 with "x"
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
    assert_eq!(play.feed(vec![Input::Now]), "");
}

/// A live owner has a steady clock, so only a resume can notice the change.
#[test]
fn set_back_clock_starts_the_span_again() {
    let mut play = Play::new(prompts(&["A.md", "B.md"]));
    play.at = Timestamp(86_400_000);
    play.start();
    play.says("main", AFTER);
    play.stop(StopMode::Now);
    play.at = Timestamp(1_000);
    assert_snapshot!(play.resume(), @"
    resumed
    main waits until 301s to enter B.md
    warn main: the clock was set back: the wait begins again, until 1970-01-01T00:05:01.000Z
    ");
    assert_eq!(play.run.next_due(), Some(Timestamp(301_000)));
    assert_eq!(play.resume(), "resumed", "only once");
}

#[test]
fn time_of_a_tag_is_taken_literally() {
    let mut play = Play::new(prompts(&["A.md", "B.md"]));
    play.at = Timestamp(86_400_000);
    play.start();
    play.says("main", r#"<goto at="1970-01-02T00:05:00Z">B</goto>"#);
    play.stop(StopMode::Now);
    play.at = Timestamp(1_000);
    assert_eq!(play.resume(), "resumed");
    assert_eq!(play.run.next_due(), Some(Timestamp(86_700_000)));
}

#[test]
fn transition_that_an_edit_forbids_reminds_a_prompt() {
    let mut play = waiting();
    play.run.settings.definition = Pinning::Unpinned;
    play.definition = prompts(&["A.md", "C.md"]);
    assert_snapshot!(play.after(Span::minutes(5)), @r#"
    remind main (1): <goto>: there is no state "B.md"; did you mean "A.md"?
    queue main.1.2 reminder at 1 for claude: resume main.1.1
    start main.1.2 #1 with $9.90: resume main.1.1
    "#);
}

#[test]
fn transition_that_an_edit_forbids_fails_a_script() {
    let mut play = Play::new(workflow(&[("S.sh", "s"), ("B.md", "b")])).started();
    play.says("main", AFTER);
    play.run.settings.definition = Pinning::Unpinned;
    play.definition = workflow(&[("S.sh", "s")]);
    assert_snapshot!(play.after(Span::minutes(5)), @r#"
    main fails: <goto>: there is no state "B.md" (the states are S.sh), kept
    ended: Failed
    "#);
    play.definition = workflow(&[("S.sh", "s"), ("B.md", "b")]);
    assert_snapshot!(play.resume(), @r#"
    resumed
    revive main
    main goto: fresh
    main enters B.md (1) as visit 2 with "x"
    queue main.2.1 at 1 for claude: fresh main.2.1
    start main.2.1 #1 with $10.00: fresh main.2.1
    "#);
}

#[test]
fn edit_must_keep_the_target_of_a_wait() {
    let mut play = waiting();
    play.stop(StopMode::Now);
    assert_snapshot!(play.adopt(prompts(&["A.md"])), @"refused: `main` waits to enter `B.md`, which no longer exists");
    assert_snapshot!(play.adopt(prompts(&["A.md", "B.md"])), @"adopted v2");
}

#[test]
fn cancel_ends_waits_and_stop_ignores_them() {
    let mut play = waiting();
    assert_snapshot!(play.stop(StopMode::AfterTurn), @"
    stop AfterTurn by k1
    ended: Stopped
    ");
    assert_snapshot!(play.resume(), @"resumed");
    assert_snapshot!(play.stop(StopMode::Cancel), @"
    stop Cancel by k2
    ended: Cancelled
    ");
    let refused = decide(&play.run, &play.definition, play.at, &play.resume_input());
    assert_eq!(refused, Err(Refusal::Ended(Ending::Cancelled)));
}

#[test]
fn long_wait_warns_about_the_conversation() {
    let mut play = play();
    assert_snapshot!(play.says("main", r#"<goto after="21d">B</goto>"#), @r#"
    settle main.1.1 #1 $0.10: at main.1.1
    main waits until 1814400s to enter B.md
    warn main: claude may have deleted the conversation by then; use <reset after="…">, which needs none
    "#);
    let mut play = self::play();
    let reset = play.says("main", r#"<reset after="21d">B</reset>"#);
    assert!(!reset.contains("warn"), "{reset}");
}

#[test]
fn kept_transition_names_its_state_in_full() {
    let play = waiting();
    let goto = Tag::Goto { target: "B.md".into(), input: Some("x".into()) };
    let status = &play.agent("main").status;
    let AgentStatus::Parked(Parked { kept, .. }) = status else { panic!("{status:?}") };
    assert_eq!(kept.tags, [goto]);
}

/// No user asked for another attempt, so no money is spent on one.
#[test]
fn wake_leaves_failed_agents_and_missing_logins_alone() {
    let states = [("A.md", "a"), ("B.md", "b"), ("V.md", "v"), ("W.md", "w")];
    let mut play = Play::new(workflow(&states))
        .with(|settings| (settings.reminders, settings.no_wait) = (0, true))
        .started();
    play.says("main", r#"<fork>V</fork><fork>W</fork><goto after="5m">B</goto>"#);
    play.says("main_v1", "no tag");
    assert_snapshot!(play.fails("main_w2", TurnFailure::Auth { why: "log in".into() }), @"
    fail main_w2.1.1 #1 $0.10: not logged in: log in
    hold claude: log in
    queue main_w2.1.1 again at 3: Retried
    ended: NeedsPerson
    ");
    assert_eq!(play.run.phase, Phase::Ended(Ending::NeedsPerson));
    play.at = play.at + Span::minutes(5);
    let wake = Resume { settings: play.settings.clone(), is_wake: true };
    assert_snapshot!(play.feed(vec![Input::Resume(Box::new(wake))]), @"
    resumed
    main goto: at main.1.1, forks 2
    main enters B.md (1) as visit 2
    queue main.2.1 at 4 for claude: resume main.1.1
    ended: NeedsPerson
    ");
}
