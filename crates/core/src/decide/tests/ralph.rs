//! `ralph`: a loop over one prompt, until it gives a result that counts.

use insta::assert_snapshot;

use super::play::{Play, usd};
use crate::agent::{AgentStatus, SessionPlan};
use crate::budget::Cost;
use crate::extension::Platform;
use crate::failure::{Clock, TurnFailure};
use crate::ids::StateName;
use crate::protocol::Source;
use crate::run::program::{Program, Ralph, UNTIL};
use crate::run::settings::InterruptedScripts;
use crate::run::stop::StopMode;
use crate::time::{Span, Timestamp};
use crate::value::Value;
use crate::workflow::{Definition, EntryPoint, SourceFile};

const HOUR: Span = Span::minutes(60);

fn repeated(prompt: &str) -> Definition {
    let file = |name: &str, text: &str| SourceFile {
        name: name.to_owned(),
        bytes: text.as_bytes().into(),
        executable: false,
    };
    let files = vec![file("P.md", prompt), file(UNTIL, "make check")];
    let start = EntryPoint::Ralph("P.md".to_owned());
    Definition::parse(files, &start, Platform::Unix).unwrap().definition
}

/// A loop of at most three iterations.
fn looped(until: Option<&str>) -> Play {
    looped_as("text", until)
}

fn looped_as(prompt: &str, until: Option<&str>) -> Play {
    let until = until.map(str::to_owned);
    let play = Play::new(repeated(prompt)).running(Program::Ralph(Ralph { until }));
    let mut play = play.with(|s| s.max_iterations = 3);
    play.start();
    play
}

fn task() -> TurnFailure {
    TurnFailure::Task { why: "no".into() }
}

fn script() -> TurnFailure {
    TurnFailure::Script {
        status: "exit status 1".into(),
        stderr: "2 tests failed".into(),
        tag: None,
    }
}

#[test]
fn message_without_result_repeats_the_prompt() {
    let mut play = looped(None);
    assert_snapshot!(play.says("main", "not yet"), @"
    settle main.1.1 #1 $0.10: at main.1.1
    main reset: fresh
    main enters P.md (2) as visit 2
    queue main.2.1 at 1 for claude: fresh main.2.1
    start main.2.1 #1 with $9.90: fresh main.2.1
    ");
    assert_eq!(play.agent("main").visit.input, None);
}

#[test]
fn a_result_ends_the_loop_with_its_payload() {
    let mut play = looped(None);
    play.says("main", "not yet");
    assert_snapshot!(play.says("main", "done: <result> x </result>"), @r#"
    settle main.2.1 #1 $0.10: at main.2.1
    main ends: " x "
    ended: Completed
    "#);
}

#[test]
fn other_tags_are_text_without_reminders() {
    for text in
        ["<goto>P</goto>", "<goto>NOWHERE</goto>", "<call>P</call>", "<fork next='P'>P</fork>", ""]
    {
        let mut play = looped(None);
        play.says("main", text);
        assert_eq!(
            play.scene(),
            "Open: $0.10 spent, $9.90 reserved\nmain at P.md: runs with $9.90"
        );
        assert_eq!(play.agent("main").visit.number, 2, "{text}");
        assert!(!play.story.iter().any(|event| format!("{event:?}").contains("Warned")), "{text}");
    }
    let mut play = looped(None);
    assert_snapshot!(play.says("main", "<goto>P</goto> <result>x</result> <reset>P</reset>"), @r#"
    settle main.1.1 #1 $0.10: at main.1.1
    main ends: "x"
    ended: Completed
    "#);
}

#[test]
fn uncertain_result_warns_and_does_not_count() {
    let check = |text: &str, expected: &str| {
        let mut play = looped(None);
        let told = play.says("main", text);
        let warned = told.lines().find(|line| line.starts_with("warn"));
        assert_eq!(warned, Some(expected), "{text}");
        assert_eq!(play.agent("main").visit.number, 2, "{text}");
    };
    check("<result>x", "warn main: ignored malformed <result>: it has no `</result>`");
    check(
        "<result>x</result> or <result>y</result>",
        "warn main: ignored malformed <result>: 2 results where one is expected",
    );
    // Beside a valid one it is only a warning.
    let mut play = looped(None);
    assert_snapshot!(play.says("main", "<result>x</result> and <result bare>y</result>"), @r#"
    settle main.1.1 #1 $0.10: at main.1.1
    warn main: ignored malformed <result>: attribute `bare` has no value
    main ends: "x"
    ended: Completed
    "#);
}

#[test]
fn last_iteration_ends_the_loop() {
    let mut play = looped(None);
    play.says("main", "1");
    play.says("main", "2");
    assert_snapshot!(play.says("main", "3"), @r#"
    settle main.3.1 #1 $0.10: at main.3.1
    main fails: 3 iterations without a result
    ended: Failed
    "#);
    // Nothing is repeated: a resume with a higher limit starts the next iteration.
    assert!(play.resume().contains("main fails: 3 iterations without a result"));
    let mut play = play.with(|s| s.max_iterations = 4);
    assert!(play.resume().contains("main enters P.md (4) as visit 4"));
    let mut play = looped(Some("make check"));
    play.says("main", "1");
    play.fails("main", script());
    play.fails("main", task());
    play.fails("main", script());
    play.says("main", "<result>x</result>");
    assert_snapshot!(play.fails("main", script()), @r#"
    fail main.6.1 #1: script: exit status 1: 2 tests failed
    warn main: the result of iteration 3 does not count: exit status 1: 2 tests failed
    main fails: 3 iterations, and `make check` never passed
    ended: Failed
    "#);
}

#[test]
fn a_result_counts_once_the_command_has_passed() {
    let mut play = looped(Some("make check"));
    assert_snapshot!(play.says("main", "<result>x</result>"), @r#"
    settle main.1.1 #1 $0.10: at main.1.1
    main result: fresh
    main enters UNTIL.sh (1) as visit 2 with "x"
    queue main.2.1 at 1 for script: carry
    start main.2.1 #1: carry
    "#);
    assert_eq!(play.agent("main").visit.input, Some(Value::from("x")));
    assert_snapshot!(play.says("main", "<result>of the script</result> <goto>P</goto>"), @r#"
    settle main.2.1 #1: fresh
    main ends: "x"
    ended: Completed
    "#);
}

#[test]
fn failed_command_is_explained_to_the_next_iteration() {
    let check = |failure: TurnFailure, warned: &str, told: &str| {
        let mut play = looped(Some("make check"));
        play.says("main", "<result>x</result>");
        let events = play.fails("main", failure);
        assert!(events.contains(warned), "{events}");
        let agent = play.agent("main");
        assert_eq!((agent.visit.location.to_string(), agent.visit.number), ("P.md".to_owned(), 3));
        assert_eq!(agent.visit.input, Some(Value::from(told)));
        assert_eq!(play.plan_of("main"), "fresh main.3.1");
        // Each explanation is sent once.
        play.says("main", "not yet");
        assert_eq!(play.agent("main").visit.input, None);
    };
    check(
        script(),
        "warn main: the result of iteration 1 does not count: exit status 1: 2 tests failed\n",
        "`make check` did not pass: exit status 1\n\n2 tests failed",
    );
    check(
        TurnFailure::Timeout { clock: Clock::Wall, after: Span::minutes(2) },
        "warn main: the result of iteration 1 does not count: timed out: not done after 2m\n",
        "`make check` did not pass: timed out: not done after 2m\n\n",
    );
}

#[test]
fn failed_iteration_counts_and_the_loop_continues() {
    let check = |failure: TurnFailure, expected: &str| {
        let mut play = looped(None);
        let told = play.fails("main", failure);
        assert!(told.contains(&format!("\nwarn main: iteration 1 failed: {expected}\n")), "{told}");
        assert_eq!(play.agent("main").visits.get(&StateName::new("P.md")), Some(&2));
        assert_eq!(play.plan_of("main"), "fresh main.2.1");
    };
    check(task(), "the client reports failure: no");
    check(TurnFailure::LostSession { session: "gone".into() }, "the client knows no session gone");
    check(
        TurnFailure::OutputTooLarge { limit: 64 << 20, head: String::new(), tail: String::new() },
        "output too large: more than 64 MiB",
    );
    let mut play = looped(None);
    assert_snapshot!(play.fails("main", task()), @"
    fail main.1.1 #1 $0.10: the client reports failure: no
    warn main: iteration 1 failed: the client reports failure: no
    main reset: fresh
    main enters P.md (2) as visit 2
    queue main.2.1 at 1 for claude: fresh main.2.1
    start main.2.1 #1 with $9.90: fresh main.2.1
    ");
}

#[test]
fn retries_come_before_a_failed_iteration() {
    let mut play = looped(None);
    for _ in 0..5 {
        play.stumbles("main");
        assert!(play.scene().ends_with("main at P.md: retries"));
        play.after(HOUR);
        assert_eq!(play.plan_of("main"), "continue main.1.1 or fresh main.1.1");
    }
    let told = play.stumbles("main");
    assert!(told.contains("iteration 1 failed: transient failure: overloaded"), "{told}");
    // Each iteration has its own.
    play.stumbles("main");
    assert!(play.scene().ends_with("main at P.md: retries"));
}

#[test]
fn the_budget_of_a_visit_ends_an_iteration() {
    let budgeted = || looped_as("---\nbudget: 0.10\n---\ntext", None);
    let failed = "warn main: iteration 1 failed: the visit's budget of $0.10 is spent";
    assert!(budgeted().stumbles("main").contains(failed));
    assert!(budgeted().is_capped("main").contains(failed));
    // Interrupted with nothing left: the next iteration starts when the run is resumed.
    let mut play = budgeted();
    play.halt();
    let told = play.resume();
    assert!(told.contains(failed), "{told}");
    assert_eq!(play.prompt().cap, Some(usd("0.10")));
    assert_eq!(play.plan_of("main"), "fresh main.2.1");
    // An answer counts at any cost.
    assert!(budgeted().says("main", "<result>x</result>").contains("ended: Completed"));
}

#[test]
fn denied_tool_can_fail_an_iteration() {
    let denied = |prompt: &str| {
        let mut play = looped_as(prompt, None);
        play.says_so("main", "<result>x</result>", |finished| finished.denied = vec!["Bash".into()])
    };
    let failed = denied("---\non_denied: fail\n---\ntext");
    assert!(failed.contains("warn main: iteration 1 failed: the client denied Bash\n"), "{failed}");
    assert!(denied("text").contains("ended: Completed"));
    assert!(denied("---\non_denied: remind\n---\ntext").contains("ended: Completed"));
}

#[test]
fn unstarted_turn_is_not_an_iteration() {
    for state in ["P.md", UNTIL] {
        let mut play = looped(Some("make check"));
        if state == UNTIL {
            play.says("main", "<result>x</result>");
        }
        play.fails("main", TurnFailure::NotStarted { why: "no client".into() });
        assert!(matches!(play.agent("main").status, AgentStatus::Failed { .. }));
        let told = play.resume();
        assert!(
            told.contains(&format!(
                "revive main\nqueue main.{}.2",
                play.agent("main").visit.number
            )),
            "{told}"
        );
    }
}

#[test]
fn loop_waits_for_login_and_usage_limits() {
    let mut play = looped(None);
    play.fails("main", TurnFailure::Auth { why: "log in".into() });
    assert!(play.scene().starts_with("Ended(NeedsPerson)"), "{}", play.scene());
    play.resume();
    assert_eq!(play.plan_of("main"), "continue main.1.1 or fresh main.1.1");
    let until = Some(Timestamp(0) + HOUR);
    play.fails("main", TurnFailure::Quota { until, why: "limit".into() });
    assert!(play.scene().ends_with("main at P.md: queued"), "{}", play.scene());
    play.after(HOUR);
    assert_eq!(play.agent("main").visits.get(&StateName::new("P.md")), Some(&1));
    assert!(play.scene().contains("main at P.md: runs"), "{}", play.scene());
}

#[test]
fn without_money_the_next_iteration_waits() {
    let mut play = looped(None).with(|s| s.budget = Some(usd("20.00")));
    play.costs(Cost::Reported(usd("10.00"))).says("main", "not yet");
    assert_eq!(play.scene(), "Ended(OverBudget): $10.00 spent\nmain at P.md: queued");
    assert!(play.resume().ends_with("start main.2.1 #1 with $10.00: fresh main.2.1"));
    // Scripts cost nothing, so the command still runs, and a result that passes counts.
    let mut play = looped(Some("make check"));
    play.costs(Cost::Reported(usd("10.00"))).says("main", "<result>x</result>");
    assert_eq!(play.scene(), "Open: $10.00 spent\nmain at UNTIL.sh: runs");
    assert!(play.says("main", "").ends_with("main ends: \"x\"\nended: Completed"));
}

#[test]
fn interrupted_iteration_continues_and_counts_once() {
    let mut play = looped(Some("make check"));
    play.says("main", "not yet");
    play.fails("main", script());
    play.crashes(true);
    assert_eq!(play.plan_of("main"), "continue main.3.1 or fresh main.3.1");
    play.says("main", "<result>x</result>");
    play.crashes(false);
    // The command runs again, with the same payload.
    assert_eq!(play.scene(), "Open: $0.30 spent\nmain at UNTIL.sh: runs");
    assert_eq!(play.agent("main").visit.input, Some(Value::from("x")));
    assert_eq!(play.run.scheduler.turns[&"main".into()].current, Some(SessionPlan::Carry));
    assert_eq!(Ralph::iterations(play.agent("main")), 2);
    // Unless the settings let interrupted scripts fail.
    let mut play = play.with(|s| s.interrupted_scripts = InterruptedScripts::Fail);
    play.crashes(false);
    assert!(play.scene().contains("main at UNTIL.sh: failed: the script was interrupted"));
}

#[test]
fn crashes_without_progress_use_no_iterations() {
    let mut play = looped(None);
    for _ in 0..5 {
        play.crashes(false);
    }
    assert!(play.scene().contains("main at P.md: failed: the turn was interrupted 5 times"));
    assert_eq!(Ralph::iterations(play.agent("main")), 1);
}

#[test]
fn stopped_loop_resumes_with_another_limit() {
    let mut play = looped(None);
    play.says("main", "1");
    play.stop(StopMode::AfterTurn);
    play.says("main", "2");
    assert!(play.scene().starts_with("Ended(Stopped)"));
    let mut play = play.with(|s| s.max_iterations = 1);
    play.resume();
    // The iteration that was about to begin is the last one.
    assert!(play.says("main", "3").contains("main fails: 3 iterations without a result\n"));
}

#[test]
fn loop_messages_are_read_for_results_only() {
    assert_eq!(Program::States.messages(), Source::Message);
    assert_eq!(Program::Ralph(Ralph::default()).messages(), Source::Iteration);
}

#[test]
fn failed_result_fails_the_loop() {
    for until in [None, Some("make check")] {
        let mut play = looped(until);
        let told = play.says("main", "<result status=\"failed\">no way</result>");
        assert!(told.ends_with("main fails: no way\nended: Failed"), "{told}");
        // A resume starts the next iteration.
        assert!(play.resume().contains("main enters P.md (2) as visit 2"));
    }
}

#[test]
fn command_runs_after_every_iteration() {
    let mut play = looped(Some("make check"));
    assert_snapshot!(play.says("main", "not yet"), @"
    settle main.1.1 #1 $0.10: at main.1.1
    main reset: fresh
    main enters UNTIL.sh (1) as visit 2
    queue main.2.1 at 1 for script: carry
    start main.2.1 #1: carry
    ");
    assert_snapshot!(play.fails("main", script()), @r#"
    fail main.2.1 #1: script: exit status 1: 2 tests failed
    warn main: after iteration 1 the command did not pass: exit status 1: 2 tests failed
    main reset: fresh
    main enters P.md (2) as visit 3 with "`make check` did not pass: exit status 1\n\n2 tests failed"
    queue main.3.1 at 2 for claude: fresh main.3.1
    start main.3.1 #1 with $9.90: fresh main.3.1
    "#);
    assert_snapshot!(play.fails("main", task()), @"
    fail main.3.1 #1 $0.10: the client reports failure: no
    warn main: iteration 2 failed: the client reports failure: no
    main reset: fresh
    main enters UNTIL.sh (2) as visit 4
    queue main.4.1 at 3 for script: carry
    start main.4.1 #1: carry
    ");
    assert_snapshot!(play.says("main", ""), @r#"
    settle main.4.1 #1: fresh
    main ends: ""
    ended: Completed
    "#);
}
