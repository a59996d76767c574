//! The effect of the six tags on sessions, stacks, directories, models and inputs.

use raymond_core::protocol::TagName;

use super::super::FailureKind;
use super::fixture::{fixture, transitions};

#[test]
fn goto_resumes_the_session_with_its_input() {
    fixture(&["A.md"])
        .says("main START.md", "<goto>A</goto>")
        .says("main A.md", r#"<goto input="again">A.md</goto>"#)
        .says("main A.md", "<result> done\n</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 goto A.md
            enter main#2 A.md count=1 input=- cwd=/w model=- depth=0
            turn main#2.1 plan=resume(main#1.1)
            move main#2 goto A.md
            enter main#3 A.md count=2 input="again" cwd=/w model=- depth=0
            turn main#3.1 plan=resume(main#1.1)
            end main " done\n"
            "#,
        );
}

#[test]
fn first_state_gets_the_run_input() {
    let mut fixture = fixture(&[]).says("main START.md", "<result></result>");
    fixture.workflow.input = Some("go".into());
    fixture.check(
        r#"
        enter main#1 START.md count=1 input="go" cwd=/w model=- depth=0
        turn main#1.1 plan=fresh
        end main ""
        "#,
    );
}

#[test]
fn reset_starts_fresh_and_keeps_the_stack() {
    fixture(&["A.md", "B.md", "R.md"])
        .says("main START.md", r#"<call return="R">A</call>"#)
        .says("main A.md", r#"<reset input="i" cd="sub">B</reset>"#)
        .says("main B.md", r#"<reset cd="/other/../w/sub/deep/..">B</reset>"#)
        .says("main B.md", "<result>x</result>")
        .says("main R.md", "<result>y</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 call A.md
            enter main#2 A.md count=1 input=- cwd=/w model=- depth=1
            turn main#2.1 plan=branch(main#1.1)
            move main#2 reset B.md
            enter main#3 B.md count=1 input="i" cwd=/w/sub model=- depth=1
            turn main#3.1 plan=fresh
            move main#3 reset B.md
            enter main#4 B.md count=2 input=- cwd=/w/sub model=- depth=1
            turn main#4.1 plan=fresh
            move main#4 result R.md
            enter main#5 R.md count=1 input="x" cwd=/w model=- depth=0
            turn main#5.1 plan=resume(main#1.1)
            end main "y"
            "#,
        );
}

#[test]
fn a_cleared_stack_drops_returns_and_inherited_models() {
    let mut fixture = fixture(&["A.md", "B.md"])
        .says("main START.md", r#"<function return="B" model="opus">A</function>"#)
        .says("main A.md", r#"<reset stack="clear">B</reset>"#)
        .says("main B.md", "<result>end</result>");
    fixture.settings.model = Some("haiku".into());
    fixture.check(
        r#"
        enter main#1 START.md count=1 input=- cwd=/w model=haiku depth=0
        turn main#1.1 plan=fresh
        move main#1 function A.md
        enter main#2 A.md count=1 input=- cwd=/w model=opus depth=1
        turn main#2.1 plan=fresh
        move main#2 reset B.md
        enter main#3 B.md count=1 input=- cwd=/w model=haiku depth=0
        turn main#3.1 plan=fresh
        end main "end"
        "#,
    );
}

// proves: P3
#[test]
fn callee_never_writes_into_its_caller() {
    fixture(&["A.md", "B.md", "R.md", "S.md"])
        .says("main START.md", r#"<call return="R" input="i">A</call>"#)
        .says("main A.md", r#"<call return="S">B</call>"#)
        .says("main B.md", "<goto>B</goto>")
        .says("main B.md", "<result>1</result>")
        .says("main S.md", "<result>2</result>")
        .says("main R.md", r#"<function return="S">B</function>"#)
        .says("main B.md", "<result>3</result>")
        .says("main S.md", "<result>4</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 call A.md
            enter main#2 A.md count=1 input="i" cwd=/w model=- depth=1
            turn main#2.1 plan=branch(main#1.1)
            move main#2 call B.md
            enter main#3 B.md count=1 input=- cwd=/w model=- depth=2
            turn main#3.1 plan=branch(main#2.1)
            move main#3 goto B.md
            enter main#4 B.md count=2 input=- cwd=/w model=- depth=2
            turn main#4.1 plan=resume(main#3.1)
            move main#4 result S.md
            enter main#5 S.md count=1 input="1" cwd=/w model=- depth=1
            turn main#5.1 plan=resume(main#2.1)
            move main#5 result R.md
            enter main#6 R.md count=1 input="2" cwd=/w model=- depth=0
            turn main#6.1 plan=resume(main#1.1)
            move main#6 function B.md
            enter main#7 B.md count=3 input=- cwd=/w model=- depth=1
            turn main#7.1 plan=fresh
            move main#7 result S.md
            enter main#8 S.md count=2 input="3" cwd=/w model=- depth=0
            turn main#8.1 plan=resume(main#1.1)
            end main "4"
            "#,
        );
}

#[test]
fn scripts_carry_the_session_unchanged() {
    fixture(&["S.sh", "T.sh", "A.md", "R.md"])
        .says("main START.md", r#"<call return="R">S</call>"#)
        .says("main S.sh", r#"<call return="A">T</call>"#)
        .says("main T.sh", "<result>t</result>")
        .says("main A.md", "<goto>S</goto>")
        .says("main S.sh", "<goto>A</goto>")
        .says("main A.md", "<result>a</result>")
        .says("main R.md", "<result>r</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 call S.sh
            enter main#2 S.sh count=1 input=- cwd=/w model=- depth=1
            turn main#2.1 plan=carry
            move main#2 call T.sh
            enter main#3 T.sh count=1 input=- cwd=/w model=- depth=2
            turn main#3.1 plan=carry
            move main#3 result A.md
            enter main#4 A.md count=1 input="t" cwd=/w model=- depth=1
            turn main#4.1 plan=branch(main#1.1)
            move main#4 goto S.sh
            enter main#5 S.sh count=2 input=- cwd=/w model=- depth=1
            turn main#5.1 plan=carry
            move main#5 goto A.md
            enter main#6 A.md count=2 input=- cwd=/w model=- depth=1
            turn main#6.1 plan=resume(main#4.1)
            move main#6 result R.md
            enter main#7 R.md count=1 input="a" cwd=/w model=- depth=0
            turn main#7.1 plan=resume(main#1.1)
            end main "r"
            "#,
        );
}

#[test]
fn transitions_without_a_session_start_fresh() {
    let mut fixture = fixture(&["S.sh", "T.sh", "A.md", "R.md"])
        .says("main S.sh", "<goto>T</goto>")
        .says("main T.sh", r#"<call return="R">A</call>"#)
        .says("main A.md", "<result>a</result>")
        .says("main R.md", "<result>r</result>");
    fixture.workflow.start = "S.sh".into();
    fixture.check(
        r#"
        enter main#1 S.sh count=1 input=- cwd=/w model=- depth=0
        turn main#1.1 plan=carry
        move main#1 goto T.sh
        enter main#2 T.sh count=1 input=- cwd=/w model=- depth=0
        turn main#2.1 plan=carry
        move main#2 call A.md
        enter main#3 A.md count=1 input=- cwd=/w model=- depth=1
        turn main#3.1 plan=fresh
        move main#3 result R.md
        enter main#4 R.md count=1 input="a" cwd=/w model=- depth=0
        turn main#4.1 plan=fresh
        end main "r"
        "#,
    );
}

#[test]
fn model_comes_from_state_call_or_settings() {
    let mut fixture = fixture(&["A.md", "B.md", "OWN.md", "S.sh", "R.md"])
        .with("OWN.md", |prompt| prompt.model = Some("own".into()))
        .says("main START.md", r#"<call return="R" model="outer">A</call>"#)
        .says("main A.md", r#"<function return="S">B</function>"#)
        .says("main B.md", r#"<function return="B" model="inner">OWN</function>"#)
        .says("main OWN.md", "<goto>A</goto>")
        .says("main A.md", "<result>1</result>")
        .says("main B.md", "<result>2</result>")
        .says("main S.sh", "<result>3</result>")
        .says("main R.md", "<result>4</result>");
    fixture.settings.model = Some("set".into());
    fixture.check(
        r#"
        enter main#1 START.md count=1 input=- cwd=/w model=set depth=0
        turn main#1.1 plan=fresh
        move main#1 call A.md
        enter main#2 A.md count=1 input=- cwd=/w model=outer depth=1
        turn main#2.1 plan=branch(main#1.1)
        move main#2 function B.md
        enter main#3 B.md count=1 input=- cwd=/w model=outer depth=2
        turn main#3.1 plan=fresh
        move main#3 function OWN.md
        enter main#4 OWN.md count=1 input=- cwd=/w model=own depth=3
        turn main#4.1 plan=fresh
        move main#4 goto A.md
        enter main#5 A.md count=2 input=- cwd=/w model=inner depth=3
        turn main#5.1 plan=resume(main#4.1)
        move main#5 result B.md
        enter main#6 B.md count=2 input="1" cwd=/w model=outer depth=2
        turn main#6.1 plan=resume(main#3.1)
        move main#6 result S.sh
        enter main#7 S.sh count=1 input="2" cwd=/w model=- depth=1
        turn main#7.1 plan=carry
        move main#7 result R.md
        enter main#8 R.md count=1 input="3" cwd=/w model=set depth=0
        turn main#8.1 plan=resume(main#1.1)
        end main "4"
        "#,
    );
}

#[test]
fn worker_starts_fresh_with_its_own_variables() {
    fixture(&["A.md", "WORKER.md", "N.md"])
        .says("main START.md", r#"<function return="N" model="m">A</function>"#)
        .says("main A.md", r#"<fork next="A" input="i" item="3" b="&lt;">WORKER</fork>"#)
        .says("main A.md", "<result>a</result>")
        .says("main N.md", "<result>n</result>")
        .says("main_worker1 WORKER.md", "<goto>N</goto>")
        .says("main_worker1 N.md", "<result>w</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 function A.md
            enter main#2 A.md count=1 input=- cwd=/w model=m depth=1
            turn main#2.1 plan=fresh
            move main#2 fork A.md
            fork main -> main_worker1 WORKER.md cwd=/w b="<" item="3"
            enter main#3 A.md count=2 input=- cwd=/w model=m depth=1
            turn main#3.1 plan=resume(main#2.1)
            move main#3 result N.md
            enter main#4 N.md count=1 input="a" cwd=/w model=- depth=0
            turn main#4.1 plan=resume(main#1.1)
            end main "n"
            enter main_worker1#1 WORKER.md count=1 input="i" cwd=/w model=- depth=0
            turn main_worker1#1.1 plan=fresh
            move main_worker1#1 goto N.md
            enter main_worker1#2 N.md count=1 input=- cwd=/w model=- depth=0
            turn main_worker1#2.1 plan=resume(main_worker1#1.1)
            end main_worker1 "w"
            "#,
        );
}

#[test]
fn worker_names_have_parent_target_and_counter() {
    fixture(&["WORKER.md", "ANALYZE.sh", "1_Über.md"])
        .says(
            "main START.md",
            "<fork>WORKER</fork><fork>WORKER</fork><goto input=\"g\">START</goto><fork cd=\"sub\">ANALYZE</fork>",
        )
        .says("main START.md", r#"<fork next="START">1_Über</fork>"#)
        .says("main START.md", "<result>m</result>")
        .says("main_worker1 WORKER.md", r#"<reset cd="sub">WORKER</reset>"#)
        .says("main_worker1 WORKER.md", r#"<fork next="WORKER" cd="deep">ANALYZE</fork>"#)
        .says("main_worker1 WORKER.md", "<result>1</result>")
        .says("main_worker2 WORKER.md", "<result>2</result>")
        .says("main_analyz3 ANALYZE.sh", "<result>3</result>")
        .says("main____ber4 1_Über.md", "<result>4</result>")
        .says("main_worker1_analyz1 ANALYZE.sh", "<result>5</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 fork START.md
            fork main -> main_worker1 WORKER.md cwd=/w
            fork main -> main_worker2 WORKER.md cwd=/w
            fork main -> main_analyz3 ANALYZE.sh cwd=/w/sub
            enter main#2 START.md count=2 input="g" cwd=/w model=- depth=0
            turn main#2.1 plan=resume(main#1.1)
            move main#2 fork START.md
            fork main -> main____ber4 1_Über.md cwd=/w
            enter main#3 START.md count=3 input=- cwd=/w model=- depth=0
            turn main#3.1 plan=resume(main#1.1)
            end main "m"
            enter main____ber4#1 1_Über.md count=1 input=- cwd=/w model=- depth=0
            turn main____ber4#1.1 plan=fresh
            end main____ber4 "4"
            enter main_analyz3#1 ANALYZE.sh count=1 input=- cwd=/w/sub model=- depth=0
            turn main_analyz3#1.1 plan=carry
            end main_analyz3 "3"
            enter main_worker1#1 WORKER.md count=1 input=- cwd=/w model=- depth=0
            turn main_worker1#1.1 plan=fresh
            move main_worker1#1 reset WORKER.md
            enter main_worker1#2 WORKER.md count=2 input=- cwd=/w/sub model=- depth=0
            turn main_worker1#2.1 plan=fresh
            move main_worker1#2 fork WORKER.md
            fork main_worker1 -> main_worker1_analyz1 ANALYZE.sh cwd=/w/sub/deep
            enter main_worker1#3 WORKER.md count=3 input=- cwd=/w/sub model=- depth=0
            turn main_worker1#3.1 plan=resume(main_worker1#2.1)
            end main_worker1 "1"
            enter main_worker1_analyz1#1 ANALYZE.sh count=1 input=- cwd=/w/sub/deep model=- depth=0
            turn main_worker1_analyz1#1.1 plan=carry
            end main_worker1_analyz1 "5"
            enter main_worker2#1 WORKER.md count=1 input=- cwd=/w model=- depth=0
            turn main_worker2#1.1 plan=fresh
            end main_worker2 "2"
            "#,
        );
}

#[test]
fn untagged_message_takes_the_determined_transition() {
    fixture(&["A.md", "B.md"])
        .with("START.md", |prompt| {
            prompt.policy = transitions(&[(TagName::Call, "A > B")]);
        })
        .with("A.md", |prompt| {
            prompt.policy = transitions(&[(TagName::Reset, "B")]);
        })
        .with("B.md", |prompt| {
            prompt.policy = transitions(&[(TagName::Fork, "A > A.md")]);
        })
        .says("main START.md", "done")
        .says("main A.md", "done")
        .says("main B.md", r#"<fork next="A" x="1">A</fork>"#)
        .says("main A.md", "<reset>B</reset>")
        .says("main B.md", "done")
        .says("main A.md", "<reset cd=\"sub\">B</reset>")
        .fails("main B.md", FailureKind::Task)
        .fails("main_a1 A.md", FailureKind::Task)
        .fails("main_a2 A.md", FailureKind::Task)
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 call A.md
            enter main#2 A.md count=1 input=- cwd=/w model=- depth=1
            turn main#2.1 plan=branch(main#1.1)
            move main#2 reset B.md
            enter main#3 B.md count=1 input=- cwd=/w model=- depth=1
            turn main#3.1 plan=fresh
            move main#3 fork A.md
            fork main -> main_a1 A.md cwd=/w x="1"
            enter main#4 A.md count=2 input=- cwd=/w model=- depth=1
            turn main#4.1 plan=resume(main#3.1)
            move main#4 reset B.md
            enter main#5 B.md count=2 input=- cwd=/w model=- depth=1
            turn main#5.1 plan=fresh
            move main#5 fork A.md
            fork main -> main_a2 A.md cwd=/w
            enter main#6 A.md count=3 input=- cwd=/w model=- depth=1
            turn main#6.1 plan=resume(main#5.1)
            move main#6 reset B.md
            enter main#7 B.md count=3 input=- cwd=/w/sub model=- depth=1
            turn main#7.1 plan=fresh
            failed main#7.1 attempt=1 task
            fail main task
            enter main_a1#1 A.md count=1 input=- cwd=/w model=- depth=0
            turn main_a1#1.1 plan=fresh
            failed main_a1#1.1 attempt=1 task
            fail main_a1 task
            enter main_a2#1 A.md count=1 input=- cwd=/w model=- depth=0
            turn main_a2#1.1 plan=fresh
            failed main_a2#1.1 attempt=1 task
            fail main_a2 task
            "#,
        );
}

#[test]
fn max_visits_only_changes_the_destination() {
    fixture(&["A.md", "LOOP.md", "OUT.md", "R.md"])
        .with("LOOP.md", |prompt| {
            prompt.max_visits = Some(1);
            prompt.then = Some("OUT".into());
        })
        .says("main START.md", r#"<call return="LOOP">LOOP</call>"#)
        .says("main LOOP.md", r#"<function return="R" input="i">LOOP</function>"#)
        .says("main OUT.md", r#"<fork next="LOOP">LOOP</fork>"#)
        .says("main OUT.md", "<result>1</result>")
        .says("main R.md", "<result>2</result>")
        .says("main OUT.md", "<result>3</result>")
        .says("main_loop1 LOOP.md", "<reset>LOOP</reset>")
        .says("main_loop1 OUT.md", "<result>w</result>")
        .check(
            r#"
            enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
            turn main#1.1 plan=fresh
            move main#1 call LOOP.md
            enter main#2 LOOP.md count=1 input=- cwd=/w model=- depth=1
            turn main#2.1 plan=branch(main#1.1)
            move main#2 function OUT.md instead-of LOOP.md
            enter main#3 OUT.md count=1 input="i" cwd=/w model=- depth=2
            turn main#3.1 plan=fresh
            move main#3 fork OUT.md instead-of LOOP.md
            fork main -> main_loop1 LOOP.md cwd=/w
            enter main#4 OUT.md count=2 input=- cwd=/w model=- depth=2
            turn main#4.1 plan=resume(main#3.1)
            move main#4 result R.md
            enter main#5 R.md count=1 input="1" cwd=/w model=- depth=1
            turn main#5.1 plan=resume(main#2.1)
            move main#5 result OUT.md instead-of LOOP.md
            enter main#6 OUT.md count=3 input="2" cwd=/w model=- depth=0
            turn main#6.1 plan=resume(main#1.1)
            end main "3"
            enter main_loop1#1 LOOP.md count=1 input=- cwd=/w model=- depth=0
            turn main_loop1#1.1 plan=fresh
            move main_loop1#1 reset OUT.md instead-of LOOP.md
            enter main_loop1#2 OUT.md count=1 input=- cwd=/w model=- depth=0
            turn main_loop1#2.1 plan=fresh
            end main_loop1 "w"
            "#,
        );
}
