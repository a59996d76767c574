//! `wait`: an agent joins its workers.

use insta::assert_snapshot;

use super::play::{Play, usd, workflow};
use crate::agent::WorkerEnd;
use crate::decide::{Refusal, decide};
use crate::run::stop::{Interruption, StopMode};
use crate::run::{Ending, Input, Phase, Settings};
use crate::time::Span;

const TWO: &str = r#"<fork item="a">W</fork> <fork item="b">W</fork>"#;

/// A prompt whose workers are scripts, and the states after a wait.
fn play() -> Play {
    play_with(|_| {})
}

fn play_with(change: impl FnOnce(&mut Settings)) -> Play {
    let states = [("A.md", "a"), ("LATE.md", "late"), ("M.md", "m"), ("W.sh", "w")];
    Play::new(workflow(&states)).with(change).started()
}

/// The agent `main` waits for two workers with this `goto`.
fn joining(goto: &str) -> Play {
    let mut play = play();
    play.says("main", &format!("{TWO} {goto}"));
    play
}

/// The ends in the list that `main` received.
fn handed(play: &Play) -> Vec<String> {
    let handed = play.agent("main").visit.handed.iter();
    let ends = handed.map(|worker| match &worker.end {
        WorkerEnd::Ended(result) => format!("{} {result:?}", worker.agent),
        WorkerEnd::Failed(failure) => format!("{} failed: {failure}", worker.agent),
        WorkerEnd::Cancelled => format!("{} cancelled", worker.agent),
    });
    ends.collect()
}

#[test]
fn parent_receives_the_results_of_all_its_workers() {
    let mut play = play();
    assert_snapshot!(play.says("main", &format!(r#"{TWO} <goto wait="all">M</goto>"#)), @"
    settle main.1.1 #1 $0.10: at main.1.1
    spawn main_w1 in /home item=a
    main_w1 enters W.sh (1) as visit 1
    queue main_w1.1.1 at 1 for script: carry
    spawn main_w2 in /home item=b
    main_w2 enters W.sh (1) as visit 1
    queue main_w2.1.1 at 2 for script: carry
    main waits for all of main_w1, main_w2 to enter M.md, forks 2
    start main_w1.1.1 #1: carry
    start main_w2.1.1 #1: carry
    ");
    assert_eq!((play.run.parked, play.run.live), (1, 3));
    assert_snapshot!(play.scene(), @"
    Open: $0.10 spent
    main at A.md: waits for 2 workers (0 ended, 0 failed)
    main_w1 at W.sh: runs
    main_w2 at W.sh: runs
    ");
    assert_snapshot!(play.says("main_w2", "<result>r-b</result>"), @r#"
    settle main_w2.1.1 #1: fresh
    main_w2 ends: "r-b"
    "#);
    assert_snapshot!(play.says("main_w1", "<result>r-a</result>"), @r#"
    settle main_w1.1.1 #1: fresh
    main_w1 ends: "r-a"
    the wait of main is over: Met
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
    assert_eq!(handed(&play), [r#"main_w1 Inline("r-a")"#, r#"main_w2 Inline("r-b")"#]);
    assert!(play.run.groups.is_empty());
    assert_eq!(play.run.parked, 0);
    assert_snapshot!(play.says("main", "<result>ok</result>"), @r#"
    settle main.2.1 #1 $0.10: at main.1.1
    main ends: "ok"
    ended: Completed
    "#);
}

#[test]
fn resume_after_a_failed_worker_meets_the_wait() {
    let mut play = joining(r#"<goto wait="all">M</goto>"#);
    play.says("main_w2", "no tag");
    assert_snapshot!(play.says("main_w1", "<result>r-a</result>"), @r#"
    settle main_w1.1.1 #1: fresh
    main_w1 ends: "r-a"
    ended: Failed
    "#);
    assert_snapshot!(play.resume(), @"
    resumed
    revive main_w2
    queue main_w2.1.2 Revived at 3 for script: carry
    start main_w2.1.2 #1: carry
    ");
    assert_snapshot!(play.says("main_w2", "<result>r-b</result>"), @r#"
    settle main_w2.1.2 #1: fresh
    main_w2 ends: "r-b"
    the wait of main is over: Met
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 4 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
}

#[test]
fn run_continues_after_a_failed_worker_is_cancelled() {
    let mut play = joining(r#"<goto wait="all">M</goto>"#);
    play.says("main_w1", "<result>r-a</result>");
    play.says("main_w2", "no tag");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    let cancel =
        || Input::CancelAgent { agent: "main_w2".into(), by: "ada".into(), key: "c1".into() };
    assert_snapshot!(play.feed(vec![cancel()]), @"
    ada cancels main_w2
    cancel main_w2: requested by ada
    ");
    assert_eq!(play.feed(vec![cancel()]), "", "a request that is delivered twice");
    assert_snapshot!(play.resume(), @"
    resumed
    the wait of main is over: Met
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
    assert_eq!(handed(&play), [r#"main_w1 Inline("r-a")"#, "main_w2 cancelled"]);
}

#[test]
fn done_counts_failed_workers_and_hands_them_over() {
    let mut play = joining(r#"<goto wait="done">M</goto>"#);
    play.says("main_w2", "no tag");
    assert_snapshot!(play.says("main_w1", "<result>r-a</result>"), @r#"
    settle main_w1.1.1 #1: fresh
    main_w1 ends: "r-a"
    the wait of main is over: Met
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main, failed main_w2
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
    assert!(play.run.failed.is_empty(), "they do not make the run failed");
    assert_eq!(play.run.handed_failures.len(), 1);
    play.says("main", "<result>ok</result>");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

#[test]
fn any_cancels_other_workers_before_the_parent_continues() {
    let mut play = joining(r#"<goto wait="any">M</goto>"#);
    assert_snapshot!(play.says("main_w1", "<result>r-a</result>"), @r#"
    settle main_w1.1.1 #1: fresh
    main_w1 ends: "r-a"
    the wait of main is over: Met
    end main_w2: enough workers ended
    "#);
    // A result that still arrives is discarded.
    assert_snapshot!(play.says("main_w2", "<result>late</result>"), @"
    interrupted main_w2.1.1 #1 by Stop, 0 crashes
    cancel main_w2: enough workers ended
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
    assert_eq!(handed(&play), [r#"main_w1 Inline("r-a")"#, "main_w2 cancelled"]);
}

#[test]
fn queued_workers_leave_at_once() {
    let mut play = play_with(|settings| settings.max_parallel = 1);
    play.says("main", &format!(r#"{TWO} <goto wait="1">M</goto>"#));
    assert_snapshot!(play.says("main_w1", "<result>r-a</result>"), @r#"
    settle main_w1.1.1 #1: fresh
    main_w1 ends: "r-a"
    the wait of main is over: Met
    cancel main_w2: enough workers ended
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
}

#[test]
fn wait_times_out() {
    let mut play = joining(r#"<goto wait="all" timeout="1m" then="LATE">M</goto>"#);
    play.says("main_w1", "<result>r-a</result>");
    assert_eq!(play.after(Span(59_999)), "");
    assert_snapshot!(play.after(Span(1)), @"
    the wait of main is over: TimedOut
    end main_w2: the wait timed out
    ");
    assert_eq!(play.run.next_due(), None, "the time is up only once");
    assert_snapshot!(play.stumbles("main_w2"), @"
    interrupted main_w2.1.1 #1 by Stop, 0 crashes
    cancel main_w2: the wait timed out
    main goto: at main.1.1, forks 2
    main enters LATE.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
    assert_eq!(handed(&play), [r#"main_w1 Inline("r-a")"#, "main_w2 cancelled"]);
}

#[test]
fn failure_leads_to_then_at_once() {
    let mut play = joining(r#"<goto wait="all" then="LATE">M</goto>"#);
    assert_snapshot!(play.says("main_w2", "no tag"), @r#"
    settle main_w2.1.1 #1: fresh
    main_w2 fails: no tag: the output ends with "no tag"; write <goto>STATE</goto> or <result>YOUR RESULT</result>
    the wait of main is over: Unmet
    end main_w1: main_w2 failed
    "#);
    assert_snapshot!(play.stumbles("main_w1"), @"
    interrupted main_w1.1.1 #1 by Stop, 0 crashes
    cancel main_w1: main_w2 failed
    main goto: at main.1.1, forks 2
    main enters LATE.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main, failed main_w2
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
    assert_eq!(play.run.handed_failures.len(), 1);
}

#[test]
fn cancelling_a_worker_cancels_the_deepest_workers_first() {
    let mut play = play_with(|settings| settings.max_parallel = 1);
    play.says("main", &format!(r#"{TWO} <goto wait="any">M</goto>"#));
    play.says("main_w1", r#"<fork next="W">W</fork>"#);
    assert_snapshot!(play.scene(), @"
    Open: $0.10 spent
    main at A.md: waits for 2 workers (0 ended, 0 failed)
    main_w1 at W.sh: queued
    main_w2 at W.sh: runs
    main_w1_w1 at W.sh: queued
    ");
    assert_snapshot!(play.says("main_w2", "<result>r-b</result>"), @r#"
    settle main_w2.1.1 #1: fresh
    main_w2 ends: "r-b"
    the wait of main is over: Met
    cancel main_w1_w1: enough workers ended
    cancel main_w1: enough workers ended
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 5 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
}

#[test]
fn waits_nest() {
    let mut play = joining(r#"<goto wait="all">M</goto>"#);
    play.says("main_w1", r#"<fork>W</fork><fork>W</fork><goto wait="all">W</goto>"#);
    play.says("main_w2", "<result>r-b</result>");
    play.says("main_w1_w1", "<result>1</result>");
    assert_snapshot!(play.says("main_w1_w2", "<result>2</result>"), @r#"
    settle main_w1_w2.1.1 #1: fresh
    main_w1_w2 ends: "2"
    the wait of main_w1 is over: Met
    main_w1 goto: fresh, forks 2
    main_w1 enters W.sh (2) as visit 2
    queue main_w1.2.1 at 5 for script: carry
    hand the list to main_w1
    start main_w1.2.1 #1: carry
    "#);
    assert_snapshot!(play.says("main_w1", "<result>r-a</result>"), @r#"
    settle main_w1.2.1 #1: fresh
    main_w1 ends: "r-a"
    the wait of main is over: Met
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 6 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    "#);
}

#[test]
fn parked_parent_has_no_budget_share() {
    let mut play = play_with(|settings| settings.budget = Some(usd("4")));
    play.says("main", r#"<fork>M</fork><fork>M</fork><goto wait="all">A</goto>"#);
    assert_snapshot!(play.scene(), @"
    Open: $0.10 spent, $3.90 reserved
    main at A.md: waits for 2 workers (0 ended, 0 failed)
    main_m1 at M.md: runs with $1.95
    main_m2 at M.md: runs with $1.95
    ");
}

#[test]
fn spent_cap_leaves_the_wait_open() {
    let mut play = play_with(|settings| settings.budget = Some(usd("0.15")));
    assert_snapshot!(play.says("main", r#"<fork>M</fork><fork>M</fork><goto wait="all">A</goto>"#), @"
    settle main.1.1 #1 $0.10: at main.1.1
    spawn main_m1 in /home
    main_m1 enters M.md (1) as visit 1
    queue main_m1.1.1 at 1 for claude: fresh main_m1.1.1
    spawn main_m2 in /home
    main_m2 enters M.md (1) as visit 1
    queue main_m2.1.1 at 2 for claude: fresh main_m2.1.1
    main waits for all of main_m1, main_m2 to enter A.md, forks 2
    warn run: 50 % of the cap is spent
    start main_m1.1.1 #1 with $0.05: fresh main_m1.1.1
    ");
    play.says("main_m1", "<result>1</result>");
    assert_eq!(play.run.phase, Phase::Ended(Ending::OverBudget));
    play.settings.budget = Some(usd("2"));
    assert_snapshot!(play.resume(), @"
    resumed
    start main_m2.1.1 #1 with $1.80: fresh main_m2.1.1
    ");
    assert_snapshot!(play.says("main_m2", "<result>2</result>"), @r#"
    settle main_m2.1.1 #1 $0.10: at main_m2.1.1
    main_m2 ends: "2"
    the wait of main is over: Met
    main goto: at main.1.1, forks 2
    main enters A.md (2) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $1.70: resume main.1.1
    "#);
}

#[test]
fn stop_keeps_waits_and_resume_ends_a_cancellation() {
    let mut play = joining(r#"<goto wait="any">M</goto>"#);
    play.says("main_w1", "<result>r-a</result>");
    play.stop(StopMode::Now);
    assert_snapshot!(play.halt(), @"
    stop Now by k2
    interrupted main_w2.1.1 #1 by Stop, 0 crashes
    cancel main_w2: enough workers ended
    ended: Stopped
    ");
    assert_snapshot!(play.resume(), @"
    resumed
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
}

#[test]
fn cancelled_turn_is_charged() {
    let mut play = play();
    play.says("main", r#"<fork>M</fork><fork>M</fork><goto wait="any">A</goto>"#);
    let before = play.run.spent;
    play.says("main_m1", "<result>1</result>");
    assert_snapshot!(play.says("main_m2", "<result>2</result>"), @"
    interrupted main_m2.1.1 #1 $0.10 by Stop, 0 crashes
    cancel main_m2: enough workers ended
    main goto: at main.1.1, forks 2
    main enters A.md (2) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.70: resume main.1.1
    ");
    assert_eq!(play.run.spent, before.plus(usd("0.20")));
}

#[test]
fn limit_counts_when_the_wait_is_over() {
    let limited = "---\nmax_visits: 1\n---\nm";
    let states = [("A.md", "a"), ("M.md", limited), ("W.sh", "w")];
    let mut play = Play::new(workflow(&states)).started();
    play.says("main", "<goto>M</goto>");
    play.says("main", r#"<fork>W</fork><goto wait="all">M</goto>"#);
    assert_snapshot!(play.says("main_w1", "<result>r</result>"), @r#"
    settle main_w1.1.1 #1: fresh
    main_w1 ends: "r"
    the wait of main is over: Met
    main fails: M.md reached its limit of 1 visit and has no `then`, kept
    ended: Failed
    "#);
    play.adopt(workflow(&[("A.md", "a"), ("M.md", "m"), ("W.sh", "w")]));
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    main goto: at main.1.1, forks 1
    main enters M.md (2) as visit 3
    queue main.3.1 at 3 for claude: resume main.1.1
    hand the list to main
    start main.3.1 #1 with $9.80: resume main.1.1
    ");
}

#[test]
fn faults_are_reported_at_once() {
    let check = |text: &str, expected: &str| {
        let mut play = play();
        let events = play.says("main", text);
        assert!(events.contains(expected), "{text}: {events}");
        assert_eq!(play.run.born, 1, "{text}: no worker was started");
    };
    let needs_forks = "`wait` needs forks in the same message: it waits for their workers";
    check(r#"<goto wait="all">M</goto>"#, needs_forks);
    let malformed = |attributes: &str, why: &str| {
        check(&format!("{TWO} <goto {attributes}>M</goto>"), &format!("malformed <goto>: {why}"));
    };
    malformed(r#"wait="some""#, r#"`wait` must be all, any, done or a number from 1, not "some""#);
    malformed(r#"wait="0""#, "`wait` must be all, any, done or a number from 1, not \"0\"");
    malformed(r#"wait="5""#, "`wait` is 5, but the message forks only 2 workers");
    malformed(r#"wait="all" timeout="1m""#, "`timeout` needs `then`, the state to enter when the");
    malformed(r#"wait="all" timeout="soon" then="M""#, "`timeout`: \"soon\" is not a duration");
    malformed(r#"wait="all" timeout="1ms" then="M""#, "`timeout` must be between 1s and 366d");
    malformed(r#"then="LATE""#, "`then` needs `wait`");
    malformed(r#"timeout="1m""#, "`timeout` needs `wait`");
    malformed(r#"wait="all" input="x""#, "`wait` and `input` cannot be combined: `wait` already");
    malformed(r#"wait="all" after="1m""#, "`after` and `wait` cannot be combined");
    malformed(r#"wait="all" at="1970-01-01T00:10:00Z""#, "`at` and `wait` cannot be combined");
    check(r#"<fork wait="all" next="M">W</fork>"#, "`wait` belongs on the goto beside the forks");
    check(r#"<reset wait="all">M</reset>"#, "`wait` is only valid on goto");
    check(&format!(r#"{TWO} <goto wait="all">X</goto>"#), "<goto>: there is no state \"X\"");
    check(
        &format!(r#"{TWO} <goto wait="all" then="X">M</goto>"#),
        "<goto>: attribute `then`: there is no state \"X\"",
    );
}

#[test]
fn policy_may_ask_for_a_wait() {
    let front = "---\nallowed_transitions: [{ tag: fork, target: W }, { tag: goto, target: M, wait: all }]\n---\na";
    let mut play = Play::new(workflow(&[("A.md", front), ("M.md", "m"), ("W.sh", "w")])).started();
    assert_snapshot!(play.says("main", "<fork>W</fork><goto>M</goto>"), @r#"
    settle main.1.1 #1 $0.10: at main.1.1
    remind main (1): <goto> to "M.md" is not allowed here
    queue main.1.2 reminder at 0 for claude: resume main.1.1
    start main.1.2 #1 with $9.90: resume main.1.1
    "#);
    assert_eq!(play.run.born, 1);
    play.says("main", r#"<fork>W</fork><goto wait="all">M</goto>"#);
    assert_eq!(play.run.born, 2);
}

#[test]
fn only_workers_can_be_cancelled() {
    let mut play = joining(r#"<goto wait="all">M</goto>"#);
    let cancel = |agent: &str| Input::CancelAgent {
        agent: agent.into(),
        by: "ada".into(),
        key: agent.into(),
    };
    let refused = |play: &Play, agent: &str| {
        decide(&play.run, &play.definition, play.at, &cancel(agent)).unwrap_err()
    };
    assert_eq!(refused(&play, "main"), Refusal::OnlyWorkers("main".into()));
    assert_eq!(refused(&play, "main_x9"), Refusal::NoSuchAgent("main_x9".into()));
    assert_snapshot!(play.feed(vec![cancel("main_w1")]), @"
    ada cancels main_w1
    end main_w1: requested by ada
    ");
    play.stop(StopMode::Cancel);
    play.halt();
    assert_eq!(refused(&play, "main_w2"), Refusal::Ended(Ending::Cancelled));
}

#[test]
fn wait_lasts_while_a_workers_worker_works() {
    let mut play = joining(r#"<goto wait="any">M</goto>"#);
    play.says("main_w1", r#"<fork>W</fork><goto wait="all">W</goto>"#);
    // The parked worker waits for its own worker, whose client still runs.
    assert_snapshot!(play.says("main_w2", "<result>r-b</result>"), @r#"
    settle main_w2.1.1 #1: fresh
    main_w2 ends: "r-b"
    the wait of main is over: Met
    end main_w1_w1: enough workers ended
    end main_w1: enough workers ended
    "#);
    assert_snapshot!(play.stumbles("main_w1_w1"), @"
    interrupted main_w1_w1.1.1 #1 by Stop, 0 crashes
    cancel main_w1_w1: enough workers ended
    cancel main_w1: enough workers ended
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 4 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
    assert_eq!(handed(&play), ["main_w1 cancelled", r#"main_w2 Inline("r-b")"#]);
}

#[test]
fn workers_of_a_cancelled_failed_worker_end_first() {
    let mut play = joining(r#"<goto wait="all">M</goto>"#);
    play.says("main_w1", r#"<fork next="W">W</fork>"#);
    play.says("main_w1", "no tag");
    play.says("main_w2", "<result>r-b</result>");
    let key = "k".to_owned();
    let cancel = Input::CancelAgent { agent: "main_w1".into(), by: "ada".to_owned(), key };
    assert_snapshot!(play.feed(vec![cancel]), @"
    ada cancels main_w1
    end main_w1_w1: requested by ada
    cancel main_w1: requested by ada
    the wait of main is over: Met
    ");
    assert_snapshot!(play.stumbles("main_w1_w1"), @"
    interrupted main_w1_w1.1.1 #1 by Stop, 0 crashes
    cancel main_w1_w1: requested by ada
    main goto: at main.1.1, forks 2
    main enters M.md (1) as visit 2
    queue main.2.1 at 5 for claude: resume main.1.1
    hand the list to main
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
}

#[test]
fn resume_revives_no_worker_after_a_timeout() {
    let mut play = joining(r#"<goto wait="done" timeout="3s" then="LATE">M</goto>"#);
    play.says("main_w1", "no tag");
    let mut inputs = play.interruptions(Interruption::Crash, true);
    inputs.push(play.resume_input());
    play.at = play.at + Span::minutes(1);
    assert_snapshot!(play.feed(inputs), @"
    interrupted main_w2.1.1 #1 by Crash, 0 crashes
    resumed
    the wait of main is over: TimedOut
    cancel main_w2: the wait timed out
    main goto: at main.1.1, forks 2
    main enters LATE.md (1) as visit 2
    queue main.2.1 at 3 for claude: resume main.1.1
    hand the list to main, failed main_w1
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
    assert_eq!(play.agent("main").visit.location.to_string(), "LATE.md");
}

#[test]
fn refused_wait_hands_nothing_to_later_states() {
    let mut play = joining(r#"<goto wait="all">M</goto>"#);
    play.says("main_w1", "<result>r-a</result>");
    let edited = |policy: &str| {
        let front =
            format!("---\nallowed_transitions: [{policy}, {{ tag: fork, target: W }}]\n---\na");
        workflow(&[("A.md", &front), ("LATE.md", "late"), ("M.md", "m"), ("W.sh", "w")])
    };
    play.stop(StopMode::Now);
    play.halt();
    play.adopt(edited("{ tag: reset, target: M }"));
    play.resume();
    play.says("main_w2", "<result>r-b</result>");
    play.says("main", "<reset>M</reset>");
    assert_snapshot!(play.says("main", "<goto input=\"mine\">LATE</goto>"), @r#"
    settle main.2.1 #1 $0.10: at main.2.1
    main goto: at main.2.1, forks 2
    main enters LATE.md (1) as visit 3 with "mine"
    queue main.3.1 at 6 for claude: resume main.2.1
    start main.3.1 #1 with $9.70: resume main.2.1
    "#);
    assert_eq!(handed(&play), [""; 0]);
}

#[test]
fn script_keeps_a_refused_wait() {
    let states =
        |last: &str| workflow(&[("A.md", "a"), ("M.md", last), ("S.sh", "s"), ("W.sh", "w")]);
    let mut play = Play::new(states("m")).started();
    play.says("main", "<goto>S</goto>");
    play.says("main", r#"<fork>W</fork><goto wait="all">M</goto>"#);
    play.stop(StopMode::Now);
    play.halt();
    play.adopt(states("---\nbackend: codex\n---\nm"));
    play.resume();
    play.says("main_w1", "<result>dear</result>");
    assert_snapshot!(play.scene(), @"
    Ended(Failed): $0.10 spent
    main at S.sh: failed: <goto>: M.md is answered by codex, but the conversation belongs to claude: enter it by <reset>, <function> or <fork>, or name a state that claude answers
    ");
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    main fails: <goto>: M.md is answered by codex, but the conversation belongs to claude: enter it by <reset>, <function> or <fork>, or name a state that claude answers, kept
    ended: Failed
    ");
    play.adopt(states("m"));
    play.resume();
    assert_eq!(handed(&play), [r#"main_w1 Inline("dear")"#]);
}

#[test]
fn agent_is_cancelled_only_once() {
    let mut play = joining(r#"<goto wait="all">M</goto>"#);
    play.says("main_w1", r#"<fork next="W">W</fork>"#);
    let cancel = |agent: &str| Input::CancelAgent {
        agent: agent.into(),
        by: "ada".to_owned(),
        key: agent.to_owned(),
    };
    play.feed(vec![cancel("main_w1_w1")]);
    assert_snapshot!(play.feed(vec![cancel("main_w1")]), @"
    ada cancels main_w1
    end main_w1: requested by ada
    ");
}

#[test]
fn cancelled_parent_stays_for_its_own_turn() {
    let mut play = joining(r#"<goto wait="all">M</goto>"#);
    play.says("main_w1", r#"<fork next="W">W</fork>"#);
    let by = "ada".to_owned();
    play.feed(vec![Input::CancelAgent { agent: "main_w1".into(), by, key: "k".to_owned() }]);
    assert_snapshot!(play.stumbles("main_w1_w1"), @"
    interrupted main_w1_w1.1.1 #1 by Stop, 0 crashes
    cancel main_w1_w1: requested by ada
    ");
    assert_snapshot!(play.stumbles("main_w1"), @"
    interrupted main_w1.2.1 #1 by Stop, 0 crashes
    cancel main_w1: requested by ada
    ");
}
