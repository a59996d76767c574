//! `max_visits`, `then`, and the budget of a visit.

use insta::assert_snapshot;

use super::play::{Play, usd, workflow};
use crate::budget::Cost;
use crate::ids::StateName;
use crate::workflow::Definition;

/// Returns a workflow in which LOOP may be visited twice.
fn looping(then: &str) -> Definition {
    let limited = format!("---\nmax_visits: 2\n{then}---\ntext");
    workflow(&[("A.md", "text"), ("LOOP.md", &limited), ("OUT.md", "text"), ("RUN.sh", "true")])
}

/// Plays until `main` has visited LOOP twice and is at A again.
fn exhausted(then: &str) -> Play {
    let mut play = Play::new(looping(then)).started();
    for _ in 0..2 {
        play.says("main", "<goto>LOOP</goto>");
        play.says("main", "<goto>A</goto>");
    }
    play
}

#[test]
fn exhausted_state_changes_only_the_destination() {
    let check = |text: &str, expected: &str| {
        let mut play = exhausted("then: OUT\n");
        play.says("main", text);
        let input = play.agent("main").visit.input.clone();
        assert_eq!((play.shows("main").as_str(), input), (expected, Some("x".into())), "{text}");
    };
    check(r#"<goto input="x">LOOP</goto>"#, "OUT.md | at main.1.1 | /home");
    check(r#"<reset input="x" cd="sub">LOOP</reset>"#, "OUT.md | fresh | /home/sub");
    check(
        r#"<call return="A" model="opus" input="x">LOOP</call>"#,
        "OUT.md | branch of main.1.1 | /home | opus < A.md (at main.1.1, /home)",
    );
    check(
        r#"<function return="A" input="x">LOOP</function>"#,
        "OUT.md | fresh | /home < A.md (at main.1.1, /home)",
    );
    check(r#"<fork>RUN</fork><goto input="x">LOOP</goto>"#, "OUT.md | at main.1.1 | /home");
}

#[test]
fn return_into_exhausted_state_goes_to_then() {
    let mut play = Play::new(looping("then: OUT\n")).started();
    play.says("main", r#"<call return="LOOP">A</call>"#);
    play.says("main", r#"<call return="A">LOOP</call>"#);
    play.says("main", "<goto>LOOP</goto>");
    play.says("main", "<result>one</result>");
    assert_snapshot!(play.says("main", "<result>two</result>"), @r#"
    settle main.5.1 #1 $0.10: at main.2.1
    main result: at main.1.1, pop, in /home, instead of LOOP.md
    main enters OUT.md (1) as visit 6 with "two"
    queue main.6.1 at 5 for claude: resume main.1.1
    start main.6.1 #1 with $9.50: resume main.1.1
    "#);
    assert_eq!(play.shows("main"), "OUT.md | at main.1.1 | /home");
}

#[test]
fn workers_count_their_own_visits() {
    let mut play = exhausted("");
    play.says("main", r#"<fork next="A">LOOP</fork>"#);
    play.says("main_loop1", "<goto>LOOP</goto>");
    assert_eq!(play.agent("main_loop1").visits.get(&StateName::new("LOOP.md")), Some(&2));
    assert!(play.says("main_loop1", "<goto>LOOP</goto>").contains("reached its limit of 2 visits"));
}

#[test]
fn exhausted_agent_fails_with_its_transition_kept() {
    let mut play = exhausted("");
    let text = r#"<reset input="x" cd="sub">LOOP</reset>"#;
    assert_snapshot!(play.says("main", text), @"
    settle main.5.1 #1 $0.10: at main.1.1
    main fails: LOOP.md reached its limit of 2 visits and has no `then`, kept
    ended: Failed
    ");
    // Each resume decides the kept transition again, in vain while nothing has changed.
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    main fails: LOOP.md reached its limit of 2 visits and has no `then`, kept
    ended: Failed
    ");
    // With an edited workflow it is taken without another turn.
    assert_eq!(play.adopt(looping("then: OUT\n")), "adopted v2");
    assert_snapshot!(play.resume(), @r#"
    resumed
    revive main
    main reset: fresh, in /home/sub, instead of LOOP.md
    main enters OUT.md (1) as visit 6 with "x"
    queue main.6.1 at 5 for claude: fresh main.6.1
    start main.6.1 #1 with $9.50: fresh main.6.1
    "#);
    assert_eq!(play.shows("main"), "OUT.md | fresh | /home/sub");
}

#[test]
fn exhausted_then_fails_the_agent() {
    let chain = |out: &str| {
        let files = [
            ("A.md", "---\nmax_visits: 1\nthen: B\n---\ntext"),
            ("B.md", &format!("---\nmax_visits: 1\n{out}---\ntext")),
            ("C.md", "text"),
        ];
        let mut play = Play::new(workflow(&files)).started();
        play.says("main", "<goto>A</goto>");
        assert_eq!(play.agent("main").visit.location.to_string(), "B.md");
        play.says("main", "<goto>A</goto>")
    };
    let failed = "main fails: A.md reached its limit of 1 visit and has no `then`, kept";
    for out in ["", "then: C\n"] {
        assert!(chain(out).contains(failed), "{out}");
    }
}

#[test]
fn then_is_not_checked_against_the_policy() {
    let files = [
        ("A.md", "---\nallowed_targets: {goto: [LOOP]}\n---\ntext"),
        ("LOOP.md", "---\nmax_visits: 1\nthen: OUT\n---\ntext"),
        ("OUT.md", "text"),
    ];
    let mut play = Play::new(workflow(&files)).started();
    play.says("main", "<goto>LOOP</goto>");
    play.says("main", "<goto>A</goto>");
    play.says("main", "<goto>LOOP</goto>");
    assert_eq!(play.agent("main").visit.location.to_string(), "OUT.md");
}

#[test]
fn forbidden_kept_transition_leads_to_a_reminder() {
    let mut play = exhausted("");
    play.says("main", "<goto>LOOP</goto>");
    let edited = [
        ("A.md", "---\nallowed_targets: {goto: [OUT]}\n---\ntext"),
        ("LOOP.md", "text"),
        ("OUT.md", "text"),
    ];
    play.adopt(workflow(&edited));
    assert_snapshot!(play.resume(), @r#"
    resumed
    revive main
    remind main (1): <goto> to "LOOP.md" is not allowed here
    queue main.5.2 reminder Revived at 5 for claude: resume main.1.1
    start main.5.2 #1 with $9.50: resume main.1.1
    "#);
    // Where there are no reminders, the body is sent again.
    let mut play = exhausted("").with(|s| s.reminders = 0);
    play.says("main", "<goto>LOOP</goto>");
    play.adopt(workflow(&edited));
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.5.2 Revived at 5 for claude: resume main.1.1
    start main.5.2 #1 with $9.50: resume main.1.1
    ");
}

#[test]
fn visit_without_budget_fails_before_another_turn() {
    let front = "---\nbudget: 0.10\n---\ntext";
    let play = || Play::new(workflow(&[("A.md", front), ("B.md", "text")])).started();
    let failed = "main fails: the visit's budget of $0.10 is spent";
    assert!(play().says("main", "no tag").contains(failed));
    assert!(play().stumbles("main").contains(failed));
    assert!(play().is_capped("main").contains(failed));
    let mut cheap = play();
    cheap.costs(Cost::Reported(usd("0.04"))).stumbles("main");
    cheap.after("1h".parse().unwrap());
    assert_eq!(cheap.prompt().cap, Some(usd("0.06")));
    // No further turn is needed, so the budget may be spent completely, and more.
    let mut play = play();
    play.costs(Cost::Reported(usd("0.30"))).says("main", "<goto>B</goto>");
    assert_eq!(play.scene(), "Open: $0.30 spent, $9.70 reserved\nmain at B.md: runs with $9.70");
}

#[test]
fn visit_budget_needs_no_run_cap() {
    let front = "---\nbudget: 0.50\n---\ntext";
    let play = Play::new(workflow(&[("A.md", front), ("B.md", "text")]));
    let mut play = play.with(|s| s.budget = None).started();
    assert_eq!(play.prompt().cap, Some(usd("0.50")));
    play.says("main", "<goto>A</goto>");
    assert_eq!(play.prompt().cap, Some(usd("0.50")));
    play.says("main", "<goto>B</goto>");
    assert_eq!(play.prompt().cap, None);
}

#[test]
fn revived_visit_keeps_its_spent_budget() {
    let front = |budget: &str| format!("---\nbudget: {budget}\n---\ntext");
    let mut play = Play::new(workflow(&[("A.md", &front("0.10"))])).started();
    play.says("main", "no tag");
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.1.2 Revived at 1 for claude: resume main.1.1
    main fails: the visit's budget of $0.10 is spent
    ended: Failed
    ");
    play.adopt(workflow(&[("A.md", &front("1.00"))]));
    play.resume();
    assert_eq!(play.prompt().cap, Some(usd("0.90")));
}
