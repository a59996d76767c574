//! Turns that a crash or a stop interrupted.

use insta::assert_snapshot;

use super::play::{Play, prompts, workflow};
use crate::agent::SessionPlan;
use crate::budget::{Cost, Micros};
use crate::decide;
use crate::decide::Refusal;
use crate::failure::TurnFailure;
use crate::ids::{AgentId, SessionId};
use crate::run::Input;
use crate::run::outcome::{Finished, Outcome};
use crate::run::settings::InterruptedScripts;
use crate::run::stop::Interruption;
use crate::value::Value;

#[test]
fn interrupted_turn_continues_or_follows_its_first_plan() {
    let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
    assert_snapshot!(play.crashes(true), @"
    interrupted main.1.1 #1 $0.10 by Crash, 0 crashes
    resumed
    queue main.1.1 again at 1: Interrupted
    start main.1.1 #2 with $9.90: continue main.1.1 or fresh main.1.1
    ");
    play.says("main", r#"<call return="C">B</call>"#);
    play.crashes(true);
    assert_eq!(play.plan_of("main"), "continue main.2.1 or branch main.1.1 to main.2.1");
    play.crashes(true);
    assert_eq!(play.plan_of("main"), "continue main.2.1 or branch main.1.1 to main.2.1");
    play.says("main", "<result>x</result>");
    play.crashes(true);
    assert_eq!(play.plan_of("main"), "resume main.1.1");
    assert_eq!(play.agent("main").visit.retries, 0);
}

#[test]
fn turn_continues_in_its_clients_session() {
    let cost = Cost::Reported(Micros(1));
    let session = || Some(SessionId::new("t"));
    let failure = TurnFailure::Transient { why: "no".into() };
    let (by, denied) = (Interruption::Stop, Vec::new);
    let outcomes = [
        Outcome::Capped { cost, progressed: true, denied: denied(), session: session() },
        Outcome::Failed { failure, cost, denied: denied(), session: session() },
        Outcome::Interrupted { by, cost, progressed: true, session: session() },
    ];
    for outcome in outcomes {
        let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
        let input = play.settled("main", outcome);
        play.feed(vec![input]);
        let turn = &play.run.scheduler.turns[&AgentId::main()];
        let fresh = turn.plan.clone();
        let or_else = Box::new(fresh);
        assert_eq!(turn.next_plan(), SessionPlan::Continue { session: "t".into(), or_else });
    }
}

// proves: S34
#[test]
fn turn_in_a_callers_session_fails() {
    let cost = Cost::Reported(Micros(1));
    let (by, denied) = (Interruption::Crash, Vec::new);
    let failure = TurnFailure::Transient { why: "no".into() };
    let outcomes = |named: &str| {
        let session = || Some(SessionId::new(named));
        let text = Value::from("<goto>C</goto>");
        let finished = Finished { session: session(), ..Finished::new(text.into(), cost) };
        [
            Outcome::Finished(Box::new(finished)),
            Outcome::Capped { cost, progressed: true, denied: denied(), session: session() },
            Outcome::Failed {
                failure: failure.clone(),
                cost,
                denied: denied(),
                session: session(),
            },
            Outcome::Interrupted { by, cost, progressed: true, session: session() },
        ]
    };
    let check = |said: &[&str], named: &str, or_else: &str| {
        for outcome in outcomes(named) {
            let play = Play::new(prompts(&["A.md", "B.md", "C.md"]));
            // Without a share: a capped turn is charged at least that.
            let mut play = play.with(|s| s.budget = None).started();
            play.says_so("main", said[0], |finished| finished.session = Some("a".into()));
            said[1..].iter().for_each(|text| drop(play.says("main", text)));
            let turn = play.run.scheduler.turns[&AgentId::main()].id.clone();
            let input = play.settled("main", outcome.clone());
            let events = play.feed(vec![input]);
            let why = format!(
                "the client reports failure: the client continued in session {named}, which belongs \
                 to a caller"
            );
            let failed =
                format!("fail {turn} #1 $0.000001: {why}\nmain fails: {why}\nended: Failed");
            assert_eq!(events, failed, "{outcome:?}");
            play.resume();
            assert_eq!(play.plan_of("main"), or_else);
        }
    };
    let (call, function) = (r#"<call return="C">B</call>"#, r#"<function return="C">B</function>"#);
    check(&[call], "a", "continue main.2.1 or branch a to main.2.1");
    check(&[function], "a", "continue main.2.1 or fresh main.2.1");
    check(&[call, "<goto>B</goto>"], "a", "resume main.2.1");
    check(&[function, call], "a", "continue main.3.1 or branch main.2.1 to main.3.1");
}

#[test]
fn opened_session_is_remembered_until_another_opens() {
    let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
    let crash = |play: &mut Play, session: Option<&str>| {
        let (by, cost) = (Interruption::Crash, Cost::Reported(Micros(1)));
        let session = session.map(SessionId::new);
        let cut =
            play.settled("main", Outcome::Interrupted { by, cost, progressed: true, session });
        let resume = play.resume_input();
        play.feed(vec![cut, resume]);
        let turn = &play.run.scheduler.turns[&AgentId::main()];
        turn.current.as_ref().and_then(SessionPlan::session).cloned().unwrap().to_string()
    };
    assert_eq!(crash(&mut play, Some("t")), "t");
    assert_eq!(crash(&mut play, None), "t");
    assert_eq!(crash(&mut play, Some("u")), "u");
    // The callee branches from the session, and the caller continues in it.
    play.says("main", r#"<call return="C">B</call>"#);
    let plan = play.run.scheduler.turns[&AgentId::main()].current.clone().unwrap();
    assert!(matches!(plan, SessionPlan::Branch { from, .. } if from == "u".into()));
    assert_eq!(crash(&mut play, Some("v")), "v");
    play.says("main", "<result>x</result>");
    let plan = play.run.scheduler.turns[&AgentId::main()].current.clone();
    assert_eq!(plan, Some(SessionPlan::Resume("u".into())));
}

#[test]
fn an_interrupted_reminder_is_still_a_reminder() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.says("main", "no tag");
    play.crashes(true);
    let prompt = play.prompt();
    assert!(matches!(prompt.message, crate::run::turn_spec::PromptText::Reminder(_)));
    assert_eq!(prompt.notice, Some(crate::protocol::Notice::Interrupted));
}

#[test]
fn five_crashes_without_progress_fail_the_agent() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    for _ in 0..4 {
        play.crashes(false);
    }
    assert_snapshot!(play.crashes(false), @"
    interrupted main.1.1 #5 $0.10 by Crash, 5 crashes
    main fails: the turn was interrupted 5 times in a row without any progress
    resumed
    ended: Failed
    ");
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.1.2 Revived at 5 for claude: continue main.1.1 or fresh main.1.1
    start main.1.2 #1 with $9.50: continue main.1.1 or fresh main.1.1
    ");
}

#[test]
fn progress_and_other_outcomes_reset_crash_count() {
    let crashes = |play: &Play| play.run.scheduler.turns[&"main".into()].stalls;
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.crashes(false);
    play.crashes(false);
    assert_eq!(crashes(&play), 2);
    play.halt();
    play.resume();
    assert_eq!(crashes(&play), 2);
    play.crashes(true);
    assert_eq!(crashes(&play), 0);
    play.crashes(false);
    play.stumbles("main");
    assert_eq!(crashes(&play), 0);
    play.after("1h".parse().unwrap());
    play.crashes(false);
    play.is_capped("main");
    assert_eq!(crashes(&play), 0);
}

#[test]
fn crash_failing_one_agent_spares_the_others() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    for _ in 0..4 {
        play.crashes(false);
    }
    play.says("main", r#"<fork next="A">W</fork>"#);
    for _ in 0..4 {
        play.crashes(false);
    }
    play.says("main", "<goto>A</goto>");
    play.crashes(false);
    assert_snapshot!(play.scene(), @"
    Open: $1.60 spent, $8.40 reserved
    main at A.md: runs with $8.40
    main_w1 at W.md: failed: the turn was interrupted 5 times in a row without any progress
    ");
}

#[test]
fn interrupted_script_follows_the_setting() {
    let crash = |how: InterruptedScripts| {
        let play = Play::new(workflow(&[("A.sh", "true")]));
        let mut play = play.with(|s| s.interrupted_scripts = how).started();
        (play.crashes(false), play)
    };
    assert_snapshot!(crash(InterruptedScripts::Rerun).0, @"
    interrupted main.1.1 #1 by Crash, 1 crashes
    resumed
    queue main.1.1 again at 1: Interrupted
    start main.1.1 #2: carry
    ");
    let (events, mut play) = crash(InterruptedScripts::Fail);
    assert_snapshot!(events, @"
    interrupted main.1.1 #1 by Crash, 1 crashes
    resumed
    main fails: the script was interrupted and is not repeated
    ended: Failed
    ");
    // Resuming a failed run asks for a repetition.
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.1.2 Revived at 1 for script: carry
    start main.1.2 #1: carry
    ");
}

#[test]
fn only_the_attempt_in_flight_has_an_outcome() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    let first = play.finished("main", "<goto>B</goto>", |_| {});
    play.stumbles("main");
    let refused = |play: &Play, input: &Input| match decide::decide(
        &play.run,
        &play.definition,
        play.at,
        input,
    ) {
        Err(Refusal::Fenced(attempt)) => format!("{} #{}", attempt.turn, attempt.number),
        other => panic!("{other:?}"),
    };
    // Not in flight, an earlier attempt, a settled turn, an unknown agent.
    assert_eq!(refused(&play, &first), "main.1.1 #1");
    play.after("1h".parse().unwrap());
    assert_eq!(refused(&play, &first), "main.1.1 #1");
    let second = play.finished("main", "<goto>B</goto>", |_| {});
    play.feed(vec![second.clone()]);
    assert_eq!(refused(&play, &second), "main.1.1 #2");
    let Input::Settled { outcome, .. } = second else { panic!() };
    let stranger = Input::Settled { turn: super::play::turn("main_w1.1.1"), attempt: 1, outcome };
    assert_eq!(refused(&play, &stranger), "main_w1.1.1 #1");
    assert_eq!(play.scene().lines().last(), Some("main at B.md: runs with $9.80"));
}

#[test]
fn first_of_two_outcomes_counts() {
    let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
    let inputs = vec![
        play.finished("main", "<goto>B</goto>", |_| {}),
        play.finished("main", "<goto>C</goto>", |_| {}),
    ];
    let events = play.feed(inputs);
    assert!(events.ends_with("refused: attempt 1 of main.1.1 is not in flight"), "{events}");
    assert_eq!(play.agent("main").visit.location.to_string(), "B.md");
}

#[test]
fn unresumed_interrupted_turn_leaves_the_run_stopped() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let cost = Cost::Unknown;
    let outcome =
        Outcome::Interrupted { by: Interruption::Crash, cost, progressed: true, session: None };
    let input = play.settled("main", outcome);
    assert!(play.feed(vec![input]).ends_with("ended: Stopped"));
    assert!(play.resume().ends_with("continue main.1.1 or fresh main.1.1"));
}
