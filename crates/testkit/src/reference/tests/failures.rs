//! Reminders, failures and retries, and the limits of visits, money and names.

use raymond_core::ids::AgentId;

use super::super::{Answer, AttemptLimit, FailureKind};
use super::fixture::{Fixture, cents, fixture};

#[test]
fn after_three_reminders_the_agent_fails() {
    fixture(&["A.md"])
        .says("main START.md", "<goto>A</goto>")
        .says("main A.md", "no tag")
        .says("main A.md", "<goto>NONE</goto>")
        .says("main A.md", "<goto/>")
        .says("main A.md", "<reset cd=\"none\">A</reset>")
        .check(
            r"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 goto A.md
            enter main#2 A.md count=1 input=- cwd=/w model=- depth=0
            turn main#2.1 plan=resume(main#1.1)
            remind main#2 no_tag
            turn main#2.2 plan=resume(main#1.1)
            remind main#2 unresolved
            turn main#2.3 plan=resume(main#1.1)
            remind main#2 malformed
            turn main#2.4 plan=resume(main#1.1)
            fail main protocol no_directory
            ",
        );
}

#[test]
fn reminder_goes_into_the_branch() {
    fixture(&["A.md"])
        .says("main START.md", "<call return=\"START\">A</call>")
        .says("main A.md", "no tag")
        .says("main A.md", "<result>a</result>")
        .says("main START.md", "<result>s</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 call A.md
            enter main#2 A.md count=1 input=- cwd=/w model=- depth=1
            turn main#2.1 plan=branch(main#1.1)
            remind main#2 no_tag
            turn main#2.2 plan=resume(main#2.1)
            move main#2 result START.md
            enter main#3 START.md count=2 input="a" cwd=/w model=- depth=0
            turn main#3.1 plan=resume(main#1.1)
            end main "s"
            "#,
        );
}

#[test]
fn scripts_are_neither_reminded_nor_retried() {
    let starts = || fixture(&["S.sh"]).says("main START.md", "<goto>S</goto>");
    let ends = |fixture: Fixture, failed: &str, failure: &str| {
        fixture.check(&format!(
            "
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 goto S.sh
            enter main#2 S.sh count=1 input=- cwd=/w model=- depth=0
            turn main#2.1 plan=carry
            {failed}
            fail main {failure}
            "
        ));
    };
    ends(starts().says("main S.sh", "no tag"), "", "protocol no_tag");
    ends(starts().says("main S.sh", "<goto>NONE</goto>"), "", "protocol unresolved");
    for (kind, name) in [(FailureKind::Script, "script"), (FailureKind::Timeout, "timeout")] {
        let fixture = starts().fails("main S.sh", kind);
        ends(fixture, &format!("failed main#2.1 attempt=1 {name}"), name);
    }
}

#[test]
fn transient_failures_are_retried_five_times_per_visit() {
    let mut fixture = fixture(&["A.md"]);
    for state in ["main START.md", "main A.md"] {
        for _ in 0..4 {
            fixture = fixture.fails(state, FailureKind::Transient);
        }
        fixture = fixture.fails(state, FailureKind::Timeout);
        fixture = fixture.says(state, "<goto>A</goto>");
    }
    fixture = fixture.says("main A.md", "no tag");
    for _ in 0..5 {
        fixture = fixture.fails("main A.md", FailureKind::Transient);
    }
    fixture.fails("main A.md", FailureKind::Timeout).check(
        r"
        enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
        turn main#1.1 plan=fresh
        failed main#1.1 attempt=1 transient
        failed main#1.1 attempt=2 transient
        failed main#1.1 attempt=3 transient
        failed main#1.1 attempt=4 transient
        failed main#1.1 attempt=5 timeout
        move main#1 goto A.md
        enter main#2 A.md count=1 input=- cwd=/w model=- depth=0
        turn main#2.1 plan=resume(main#1.1)
        failed main#2.1 attempt=1 transient
        failed main#2.1 attempt=2 transient
        failed main#2.1 attempt=3 transient
        failed main#2.1 attempt=4 transient
        failed main#2.1 attempt=5 timeout
        move main#2 goto A.md
        enter main#3 A.md count=2 input=- cwd=/w model=- depth=0
        turn main#3.1 plan=resume(main#1.1)
        remind main#3 no_tag
        turn main#3.2 plan=resume(main#1.1)
        failed main#3.2 attempt=1 transient
        failed main#3.2 attempt=2 transient
        failed main#3.2 attempt=3 transient
        failed main#3.2 attempt=4 transient
        failed main#3.2 attempt=5 transient
        failed main#3.2 attempt=6 timeout
        fail main timeout
        ",
    );
}

#[test]
fn retries_count_over_the_whole_visit() {
    let mut fixture = fixture(&[])
        .fails("main START.md", FailureKind::Transient)
        .says("main START.md", "no tag")
        .fails("main START.md", FailureKind::Transient);
    fixture.settings.retries = 1;
    fixture.check(
        r"
        enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
        turn main#1.1 plan=fresh
        failed main#1.1 attempt=1 transient
        remind main#1 no_tag
        turn main#1.2 plan=resume(main#1.1)
        failed main#1.2 attempt=1 transient
        fail main transient
        ",
    );
}

#[test]
fn quota_failures_use_no_retry() {
    let mut fixture = fixture(&[]);
    fixture.settings.retries = 0;
    fixture
        .fails("main START.md", FailureKind::Quota)
        .fails("main START.md", FailureKind::Quota)
        .says("main START.md", "<result>x</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            failed main#1.1 attempt=1 quota
            failed main#1.1 attempt=2 quota
            end main "x"
            "#,
        );
}

#[test]
fn task_failures_end_and_login_failures_wait() {
    let check = |kind, name: &str, last: &str| {
        fixture(&[]).fails("main START.md", kind).check(&format!(
            "
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            failed main#1.1 attempt=1 {name}
            {last}
            "
        ));
    };
    check(FailureKind::Task, "task", "fail main task");
    check(FailureKind::LostSession, "lost_session", "fail main lost_session");
    check(FailureKind::Auth, "auth", "wait main auth");
    check(FailureKind::Environment, "environment", "wait main environment");
}

#[test]
fn failure_ends_only_its_own_agent() {
    fixture(&["W.md"])
        .says("main START.md", "<fork next=\"START\">W</fork>")
        .fails("main START.md", FailureKind::Task)
        .says("main_w1 W.md", "<result>w</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 fork START.md
            fork main -> main_w1 W.md cwd=/w
            enter main#2 START.md count=2 input=- cwd=/w model=- depth=0
            turn main#2.1 plan=resume(main#1.1)
            failed main#2.1 attempt=1 task
            fail main task
            enter main_w1#1 W.md count=1 input=- cwd=/w model=- depth=0
            turn main_w1#1.1 plan=fresh
            end main_w1 "w"
            "#,
        );
}

#[test]
fn spent_visit_budget_fails_the_next_turn() {
    // The first answer costs nothing, and leads to a reminder.
    let with = || {
        let fixture = fixture(&[]).says("main START.md", "");
        fixture.with("START.md", |prompt| prompt.budget = Some(cents(50)))
    };
    with()
        .answers("main START.md", Answer::text("no tag").with_cost(cents(49)))
        .answers("main START.md", Answer::failure(FailureKind::Transient).with_cost(cents(1)))
        .check(
            r"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            remind main#1 no_tag
            turn main#1.2 plan=resume(main#1.1)
            remind main#1 no_tag
            turn main#1.3 plan=resume(main#1.1)
            failed main#1.3 attempt=1 transient
            fail main visit_budget
            ",
        );
    with().answers("main START.md", Answer::text("no tag").with_cost(cents(50))).check(
        r"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            remind main#1 no_tag
            turn main#1.2 plan=resume(main#1.1)
            fail main visit_budget
            ",
    );
    // A login does not raise the budget.
    with().answers("main START.md", Answer::failure(FailureKind::Auth).with_cost(cents(50))).check(
        r"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            remind main#1 no_tag
            turn main#1.2 plan=resume(main#1.1)
            failed main#1.2 attempt=1 auth
            fail main visit_budget
            ",
    );
    with()
        .answers("main START.md", Answer::text("<goto>START</goto>").with_cost(cents(60)))
        .answers("main START.md", Answer::text("<result>x</result>").with_cost(cents(60)))
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            remind main#1 no_tag
            turn main#1.2 plan=resume(main#1.1)
            move main#1 goto START.md
            enter main#2 START.md count=2 input=- cwd=/w model=- depth=0
            turn main#2.1 plan=resume(main#1.1)
            end main "x"
            "#,
        );
}

#[test]
fn max_visits_without_then_fails_the_agent() {
    let ends = |fixture: Fixture| {
        fixture.says("main START.md", "<fork next=\"START\">A</fork>").check(
            r"
                enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
                turn main#1.1 plan=fresh
                fail main visits
                ",
        );
    };
    let once = |then: Option<&str>| {
        let then = then.map(str::to_owned);
        fixture(&["A.md"]).with("START.md", |prompt| {
            prompt.max_visits = Some(1);
            prompt.then = then;
        })
    };
    ends(once(None));
    ends(once(Some("START")));
}

#[test]
fn exhausted_then_fails_the_agent() {
    fixture(&["A.md"])
        .with("START.md", |prompt| {
            prompt.max_visits = Some(1);
            prompt.then = Some("A".into());
        })
        .with("A.md", |prompt| {
            prompt.max_visits = Some(1);
            prompt.then = Some("START".into());
        })
        .says("main START.md", "<goto>START</goto>")
        .says("main A.md", "<goto>A</goto>")
        .check(
            r"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 goto A.md instead-of START.md
            enter main#2 A.md count=1 input=- cwd=/w model=- depth=0
            turn main#2.1 plan=resume(main#1.1)
            fail main visits
            ",
        );
}

#[test]
fn too_long_worker_name_fails_the_parent() {
    let mut fixture = fixture(&[]);
    let mut name = "main".to_owned();
    let mut parents = 0;
    while name.len() <= AgentId::MAX {
        let place = format!("{name} START.md");
        fixture = fixture.says(&place, "<fork next=\"START\">START</fork>");
        name.push_str("_start1");
        parents += 1;
        if name.len() <= AgentId::MAX {
            fixture = fixture.says(&place, "<result></result>");
        }
    }
    let history = fixture.run().expect("it ends");
    assert_eq!(history.matches("\nfail ").count(), 1);
    assert_eq!(history.matches(" too_deep\n").count(), 1);
    assert_eq!(history.matches("\nend ").count(), parents - 1);
}

#[test]
fn a_workflow_without_an_end_is_reported() {
    let mut fixture = fixture(&[]);
    for _ in 0..10 {
        fixture = fixture.says("main START.md", "<goto>START</goto>");
    }
    fixture.settings.max_attempts = 10;
    assert_eq!(fixture.run(), Err(AttemptLimit(10)));
}
