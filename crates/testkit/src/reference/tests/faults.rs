//! Messages that are refused, and the reasons.

use raymond_core::protocol::TagName::{self, Call, Fork, Function, Goto, Result as Return};

use super::super::{FailureKind, Policy, Prompt};
use super::fixture::{Fixture, allowed, fixture, transitions};

/// A workflow whose first state answers this, with every state that the tags name.
fn first_answer(text: &str) -> Fixture {
    fixture(&["A.md", "B.md", "TWO.md", "TWO.sh", "WINDOWS.bat", "a.b.md", "..md", "...md", "S.sh"])
        .says("main START.md", text)
}

/// Checks that the text is refused for this reason: one reminder, in the same session.
#[track_caller]
fn refused(fixture: Fixture, fault: &str) {
    fixture.says("main START.md", "<result>ok</result>").check(&format!(
        r#"
        enter main#1 START.md count=1 input=- cwd=/w model=- depth=0
        turn main#1.1 plan=fresh
        remind main#1 {fault}
        turn main#1.2 plan=resume(main#1.1)
        end main "ok"
        "#
    ));
}

/// Checks that the text is taken as this move, and leads to `A.md`.
#[track_caller]
fn taken(fixture: Fixture, expected: &str) {
    let fixture = fixture.fails("main A.md", FailureKind::Task);
    assert_eq!(after_first_turn(fixture), expected);
}

/// Returns the line after the first turn.
fn after_first_turn(mut fixture: Fixture) -> String {
    let history = fixture.run().expect("it ends");
    let line = history.lines().nth(2).expect("the first turn has an end");
    line.to_owned()
}

fn last_line(mut fixture: Fixture) -> String {
    let history = fixture.run().expect("it ends");
    history.lines().last().expect("something happens").to_owned()
}

#[test]
fn a_message_needs_exactly_one_transition() {
    refused(first_answer("no tag"), "no_tag");
    refused(first_answer("see `<goto>A</goto>`"), "no_tag");
    refused(first_answer("<goto>A</goto><goto>A</goto>"), "several_tags");
    refused(first_answer("<goto>A</goto><result>x</result>"), "several_tags");
    refused(first_answer("<fork next=\"A\">A</fork><result>x</result>"), "several_tags");
    refused(first_answer("<fork>A</fork><goto>A</goto><goto>A</goto>"), "several_tags");
    refused(first_answer("<fork>A</fork>"), "malformed");
    refused(first_answer("<goto/> <call>A</call>"), "malformed");
    taken(first_answer("<goto/> <goto>A</goto> <call>A</call>"), "move main#1 goto A.md");
}

// proves: S22
#[test]
fn targets_resolve_inside_the_scope_only() {
    for target in [
        "NONE",
        "a.md",
        "TWO",
        "WINDOWS",
        "WINDOWS.bat",
        ".",
        "..",
        "./A",
        "A.md/",
        "c:A",
        "A\\B",
        "A\u{1}B",
    ] {
        refused(first_answer(&format!("<goto>{target}</goto>")), "unresolved");
        refused(first_answer(&format!("<call return=\"{target}\">A</call>")), "unresolved");
        refused(first_answer(&format!("<fork next=\"{target}\">A</fork>")), "unresolved");
        refused(
            first_answer(&format!("<fork next=\"A\">A</fork><fork next=\"A\">{target}</fork>")),
            "unresolved",
        );
    }
    taken(first_answer("<goto>A</goto>"), "move main#1 goto A.md");
    let exact = first_answer("<goto>TWO.sh</goto>").says("main TWO.sh", "<goto>A</goto>");
    taken(exact, "move main#1 goto TWO.sh");
    let dotted = first_answer("<goto>a.b</goto>").says("main a.b.md", "<goto>A</goto>");
    taken(dotted, "move main#1 goto a.b.md");
}

#[test]
fn forks_and_goto_share_one_next_state() {
    refused(first_answer("<fork next=\"A\">A</fork><fork next=\"B\">A</fork>"), "next_differs");
    refused(first_answer("<fork next=\"A\">A</fork><goto>B</goto>"), "next_differs");
    let same = "<fork next=\"A.md\">B</fork><fork>B</fork><goto>A</goto>";
    let fixture = first_answer(same)
        .fails("main_b1 B.md", FailureKind::Task)
        .fails("main_b2 B.md", FailureKind::Task);
    taken(fixture, "move main#1 fork A.md");
}

// proves: S23
#[test]
fn directories_must_exist() {
    for cd in ["none", "/none", "../..", "sub/none"] {
        refused(first_answer(&format!("<reset cd=\"{cd}\">A</reset>")), "no_directory");
        refused(first_answer(&format!("<fork next=\"A\" cd=\"{cd}\">A</fork>")), "no_directory");
    }
    for cd in ["sub", "./sub/", "/other", "sub/..", "../other"] {
        taken(first_answer(&format!("<reset cd=\"{cd}\">A</reset>")), "move main#1 reset A.md");
    }
}

#[test]
fn a_conversation_stays_with_its_backend() {
    let with = |text: &str| {
        let elsewhere = |prompt: &mut Prompt| prompt.backend = Some("other".to_owned());
        first_answer(text).with("B.md", elsewhere)
    };
    let other = "other_backend";
    refused(with("<goto>B</goto>"), other);
    refused(with("<call return=\"A\">B</call>"), other);
    refused(with("<call return=\"B\">A</call>"), other);
    refused(with("<function return=\"B\">A</function>"), other);
    refused(with("<fork next=\"B\">A</fork>"), other);
    refused(with("<fork>A</fork><fork>A</fork><goto>B</goto>"), other);
    let back = with("<function return=\"A\">B</function>").says("main B.md", "<result>r</result>");
    taken(back, "move main#1 function B.md");
    let script = with("<goto>S</goto>").says("main S.sh", "<goto>B</goto>");
    assert_eq!(last_line(script), "fail main protocol other_backend");
    // `max_visits` changes the destination. The agent cannot know that, so there is no reminder.
    let limited = |prompt: &mut Prompt| {
        (prompt.max_visits, prompt.then) = (Some(1), Some("B".to_owned()));
    };
    let limit = with("<goto>START</goto>").with("START.md", limited);
    assert_eq!(last_line(limit), "fail main other_backend");
    let returns = with("<function return=\"START\">A</function>").with("START.md", limited);
    let returns = returns.says("main A.md", "<result>r</result>");
    assert_eq!(last_line(returns), "fail main other_backend");
}

#[test]
fn first_fault_of_the_list_is_reported() {
    let forbidding = |text: &str| {
        first_answer(text).with("START.md", |prompt| prompt.policy.tags = Some(vec![Return]))
    };
    refused(forbidding("<reset cd=\"none\">NONE</reset>"), "unresolved");
    refused(forbidding("<fork next=\"A\" cd=\"none\">A</fork><goto>B</goto>"), "next_differs");
    refused(forbidding("<reset cd=\"none\">A</reset>"), "no_directory");
    refused(forbidding("<reset>A</reset>"), "forbidden");
}

/// Builds a policy from its three forms.
fn policy(tags: &[TagName], targets: &[(TagName, &str)], list: &[(TagName, &str)]) -> Policy {
    let mut policy = Policy::default();
    if !tags.is_empty() {
        policy.tags = Some(tags.to_vec());
    }
    for (tag, text) in targets {
        let allowed = allowed(text);
        policy.targets.entry(*tag).or_default().push(allowed);
    }
    if !list.is_empty() {
        policy.transitions = transitions(list).transitions;
    }
    policy
}

// proves: S22
#[test]
fn tag_must_pass_every_form_of_policy() {
    let with = |text: &str, policy: Policy| {
        first_answer(text).with("START.md", |prompt| prompt.policy = policy)
    };
    let goto_a = "<goto>A</goto>";
    let call = "<call return=\"B\">A</call>";
    for policy in [
        policy(&[Call, Return], &[], &[]),
        policy(&[], &[(Goto, "B")], &[]),
        policy(&[], &[(Goto, "A.sh")], &[]),
        policy(&[], &[], &[(Goto, "B"), (Call, "A"), (Return, "*")]),
        policy(&[Goto, Return], &[(Goto, "B")], &[(Goto, "A"), (Return, "*")]),
        policy(&[Goto, Return], &[(Goto, "A")], &[(Goto, "B"), (Return, "*")]),
    ] {
        refused(with(goto_a, policy), "forbidden");
    }
    for policy in [
        policy(&[Goto], &[], &[]),
        policy(&[], &[(Call, "B")], &[]),
        policy(&[], &[(Goto, "B"), (Goto, "A")], &[]),
        policy(&[], &[(Goto, "A.md")], &[]),
        policy(&[Goto], &[(Goto, "A")], &[(Goto, "*")]),
    ] {
        taken(with(goto_a, policy), "move main#1 goto A.md");
    }
    for policy in [
        policy(&[], &[(Call, "A > A")], &[]),
        policy(&[], &[(Call, "B > B")], &[]),
        policy(&[], &[], &[(Call, "A > A"), (Function, "A > B"), (Return, "*")]),
    ] {
        refused(with(call, policy), "forbidden");
    }
    for policy in [
        policy(&[], &[(Call, "A")], &[]),
        policy(&[], &[(Call, "* > B.md")], &[]),
        policy(&[], &[], &[(Call, "A > B")]),
    ] {
        taken(with(call, policy), "move main#1 call A.md");
    }
}

#[test]
fn every_fork_must_pass_the_policy() {
    let text = "<fork>B</fork><goto>A</goto>";
    let with = |list: &[(TagName, &str)]| {
        let mut list = list.to_vec();
        list.push((Return, "*"));
        first_answer(text).with("START.md", |prompt| prompt.policy = transitions(&list))
    };
    refused(with(&[(Fork, "B > A")]), "forbidden");
    refused(with(&[(Fork, "B > B"), (Goto, "A")]), "forbidden");
    let allowed = with(&[(Fork, "B > A"), (Goto, "A")]).fails("main_b1 B.md", FailureKind::Task);
    taken(allowed, "move main#1 fork A.md");
}

#[test]
fn only_untagged_messages_take_implicit_transitions() {
    let with = |text: &str, list: &[(TagName, &str)]| {
        first_answer(text).with("START.md", |prompt| {
            prompt.policy = transitions(list);
        })
    };
    let fails = |mut fixture: Fixture, fault: &str| {
        fixture.settings.reminders = 0;
        let expected = format!("fail main protocol {fault}");
        assert_eq!(after_first_turn(fixture), expected);
    };
    taken(with("done", &[(Goto, "A")]), "move main#1 goto A.md");
    fails(with("done", &[(Goto, "*")]), "no_tag");
    fails(with("done", &[(Return, "*")]), "no_tag");
    fails(with("done", &[(Goto, "A"), (Goto, "B")]), "no_tag");
    fails(with("done", &[(Call, "A")]), "no_tag");
    fails(with("done", &[(Fork, "A")]), "no_tag");
    fails(with("<goto/>", &[(Goto, "A")]), "malformed");
    fails(with("a `<goto>A</goto>`", &[(Goto, "A")]), "no_tag");
    fails(with("<goto>B</goto>", &[(Goto, "A")]), "forbidden");
}

#[test]
fn then_is_not_checked_against_the_policy() {
    let fixture = first_answer("<goto>START</goto>").with("START.md", |prompt| {
        prompt.max_visits = Some(1);
        prompt.then = Some("A".into());
        prompt.policy.targets.insert(Goto, vec![allowed("START")]);
    });
    taken(fixture, "move main#1 goto A.md instead-of START.md");
}

// proves: S24
#[test]
fn too_many_workers_fail_the_agent() {
    let two = "<fork>A</fork><fork>A</fork><goto>A</goto>";
    let mut fixture = first_answer(two);
    fixture.settings.max_agents = 1;
    assert_eq!(after_first_turn(fixture), "fail main too_many_agents");
    let mut fixture = first_answer(two)
        .fails("main_a1 A.md", FailureKind::Task)
        .fails("main_a2 A.md", FailureKind::Task);
    fixture.settings.max_agents = 2;
    taken(fixture, "move main#1 fork A.md");
}
