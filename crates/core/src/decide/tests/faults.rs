//! Faults: reminders and their cost.

use insta::assert_snapshot;

use super::play::{Play, USUAL, prompts, workflow};
use crate::budget::Cost;
use crate::failure::TurnFailure;
use crate::run::outcome::Outcome;
use crate::run::turn_spec::PromptText;

#[test]
fn every_fault_leads_to_a_reminder() {
    let check = |text: &str, fault: &str| {
        let front = "---\nallowed_tags: [goto, reset]\nallowed_targets: {goto: [B]}\n---\ntext";
        let files = [("A.md", front), ("B.md", "text"), ("C.md", "text"), ("C.sh", "true")];
        let mut play = Play::new(workflow(&files)).started();
        let events = play.says("main", text);
        let expected = format!(
            "remind main (1): {fault}\nqueue main.1.2 reminder at 0 for claude: resume main.1.1\n\
             start main.1.2 #1 with $9.90: resume main.1.1"
        );
        assert!(events.ends_with(&expected), "{text}: {events}");
        assert!(matches!(play.prompt().message, PromptText::Reminder(_)), "{text}");
    };
    check("", "no tag: the output is empty");
    check(
        "I write `<goto>B</goto>` next.",
        "no tag: the only tag is in code, where it does not count: write it as plain text",
    );
    check("<goto>B</goto><goto>B</goto>", "2 tags where one is expected: goto, goto");
    check("<goto>B</goto><result>x</result>", "2 tags where one is expected: goto, result");
    check("<goto/>", "malformed <goto>: it ends with `/>` and names nothing");
    check("<goto>D</goto>", r#"<goto>: there is no state "D""#);
    check("<goto>C</goto>", r#"<goto>: "C" could be C.md or C.sh; write the extension"#);
    check(
        "<goto>../B</goto>",
        r#"<goto>: a target is a file name, and "../B" is not one: it holds a slash"#,
    );
    check(r#"<reset cd="nowhere">B</reset>"#, r#"<reset>: no directory "nowhere""#);
    check("<result>x</result>", "<result> is not allowed here");
    check("<goto>C.md</goto>", r#"<goto> to "C.md" is not allowed here"#);
}

#[test]
fn return_is_checked_like_a_target() {
    let check = |policy: &str, text: &str, fault: &str| {
        let front = format!("---\n{policy}\n---\ntext");
        let files = [("A.md", front.as_str()), ("B.md", "text"), ("C.md", "text")];
        let mut play = Play::new(workflow(&files)).started();
        let events = play.says("main", text);
        let reminded = events.lines().find(|line| line.starts_with("remind")).unwrap_or("none");
        assert_eq!(reminded, fault, "{policy}: {text}");
    };
    let call = r#"<call return="C">B</call>"#;
    check(
        "{}",
        r#"<call return="D">B</call>"#,
        r#"remind main (1): <call>: attribute `return`: there is no state "D""#,
    );
    check("allowed_targets: {call: [B]}", call, "none");
    check("allowed_targets: {call: [{child: B, return: C}]}", call, "none");
    check(
        "allowed_targets: {call: [{child: B, return: A}]}",
        call,
        r#"remind main (1): <call> to "B.md" with return="C.md" is not allowed here"#,
    );
    check(
        "allowed_transitions: [{tag: function, target: B, return: C}]",
        call,
        "remind main (1): <call> is not allowed here",
    );
}

#[test]
fn after_its_reminders_the_agent_fails() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.reminders = 2).started();
    play.says("main", "one");
    play.says("main", "two");
    assert_eq!(play.agent("main").visit.reminders, 2);
    assert_snapshot!(play.says("main", "three"), @r#"
    settle main.1.3 #1 $0.10: at main.1.1
    main fails: no tag: the output ends with "three"; write <goto>STATE</goto> or <result>YOUR RESULT</result>
    ended: Failed
    "#);
}

#[test]
fn reminders_are_counted_per_visit() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.reminders = 1).started();
    for _ in 0..3 {
        play.says("main", "nothing");
        play.says("main", "<goto>A</goto>");
    }
    assert_eq!((play.run.visits, play.run.failed.len()), (4, 0));
}

#[test]
fn reminder_keeps_its_place_in_the_queue() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    assert_snapshot!(play.says("main", "nothing"), @r#"
    settle main.2.1 #1 $0.10: at main.1.1
    remind main (1): no tag: the output ends with "nothing"
    queue main.2.2 reminder at 1 for claude: resume main.1.1
    start main.2.2 #1 with $9.80: resume main.1.1
    "#);
    assert_snapshot!(play.scene(), @"
    Open: $0.20 spent, $9.80 reserved
    main at A.md: runs with $9.80
    main_w1 at W.md: queued
    main_w2 at W.md: queued
    ");
}

#[test]
fn reminder_counts_in_the_visits_budget() {
    let front = "---\nbudget: 0.25\n---\ntext";
    let mut play = Play::new(workflow(&[("A.md", front)])).started();
    assert_eq!(play.prompt().cap, Some(super::play::usd("0.25")));
    play.says("main", "nothing");
    assert_eq!(play.prompt().cap, Some(super::play::usd("0.15")));
    play.says("main", "nothing");
    assert_eq!(play.prompt().cap, Some(super::play::usd("0.05")));
    play.costs(Cost::Reported(super::play::usd("0.05")));
    assert_snapshot!(play.says("main", "nothing"), @"
    settle main.1.3 #1 $0.05: at main.1.1
    main fails: the visit's budget of $0.25 is spent
    ended: Failed
    ");
}

#[test]
fn scripts_are_not_reminded() {
    let check = |text: &str, stderr: &str, failure: &str| {
        let mut play = Play::new(workflow(&[("A.sh", "true"), ("B.md", "text")])).started();
        let events =
            play.says_so("main", text, |finished| stderr.clone_into(&mut finished.reply.stderr));
        let failed = events.lines().find(|line| line.starts_with("main fails")).unwrap_or(&events);
        assert_eq!(failed, format!("main fails: {failure}"));
    };
    let printed = r#"no tag: the output ends with "hello"; write <goto>STATE</goto> or <result>YOUR RESULT</result>"#;
    check("hello", "", printed);
    check("hello", "cannot find x", &format!("{printed}; stderr: cannot find x"));
    let missing = r#"<goto>: there is no state "C" (the states are A.sh, B.md)"#;
    check("<goto>C</goto>", "", missing);
}

#[test]
fn failure_lists_the_first_states() {
    let check = |count: usize, last: &str| {
        let names: Vec<String> = (10..10 + count).map(|n| format!("S{n}.sh")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "true")).collect();
        let mut play = Play::new(workflow(&files)).started();
        play.says("main", "<goto>C</goto>");
        let scene = play.scene();
        assert!(scene.ends_with(last), "{count}: {scene}");
    };
    check(19, ", S27.sh, S28.sh)");
    check(20, ", S28.sh, S29.sh)");
    check(21, ", S28.sh, S29.sh, …)");
    check(22, ", S28.sh, S29.sh, …)");
}

#[test]
fn beside_one_valid_tag_the_others_only_warn() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    let text = r#"<call>B</call> <goto colour="red">B</goto>"#;
    let warnings: Vec<String> = play
        .says_so("main", text, |finished| {
            finished.denied.push("Bash(git push)".to_owned());
            finished.warnings.push(crate::run::warning::Warning::InvalidUtf8);
        })
        .lines()
        .filter(|line| line.starts_with("warn"))
        .map(str::to_owned)
        .collect();
    assert_snapshot!(warnings.join("\n"), @r#"
    warn main: the output was not UTF-8; bad bytes were replaced
    warn main: ignored malformed <call>: attribute `return` is missing
    warn main: <goto> has no attribute "colour"; it was ignored
    warn main: the client denied Bash(git push)
    "#);
    assert_eq!(play.agent("main").visit.location.to_string(), "B.md");
}

#[test]
fn denied_tool_follows_on_denied() {
    let check = |front: &str, expected: &str| {
        let front = format!("---\n{front}\n---\ntext");
        let mut play = Play::new(workflow(&[("A.md", &front)])).started();
        let denied =
            |finished: &mut crate::run::outcome::Finished| finished.denied.push("Bash".to_owned());
        play.says_so("main", "<goto>A</goto>", denied);
        assert_eq!(play.scene().lines().last(), Some(expected), "{front}");
    };
    check("on_denied: warn", "main at A.md: runs with $9.90");
    check("on_denied: fail", "main at A.md: failed: the client denied Bash");
    check("on_denied: remind", "main at A.md: runs with $9.90");
    let mut play = Play::new(workflow(&[("A.md", "---\non_denied: remind\n---\ntext")])).started();
    let events = play.costs(USUAL).says_so("main", "<goto>A</goto>", |finished| {
        finished.denied.push("Bash".to_owned());
    });
    assert!(events.contains("remind main (1): tools denied: Bash"), "{events}");
}

#[test]
fn one_agents_failure_ends_that_agent_only() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.reminders = 0).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    assert_snapshot!(play.says("main_w1", "no tag"), @r#"
    settle main_w1.1.1 #1 $0.10: at main_w1.1.1
    main_w1 fails: no tag: the output ends with "no tag"; write <goto>STATE</goto> or <result>YOUR RESULT</result>
    "#);
    assert_snapshot!(play.scene(), @r#"
    Open: $0.20 spent, $6.60 reserved
    main at A.md: runs with $3.30
    main_w1 at W.md: failed: no tag: the output ends with "no tag"; write <goto>STATE</goto> or <result>YOUR RESULT</result>
    main_w2 at W.md: runs with $3.30
    "#);
    play.says("main", "<result>mine</result>");
    assert_snapshot!(play.says("main_w2", "<result>theirs</result>"), @r#"
    settle main_w2.1.1 #1 $0.10: at main_w2.1.1
    main_w2 ends: "theirs"
    ended: Failed
    "#);
    assert_snapshot!(play.scene(), @r#"
    Ended(Failed): $0.40 spent
    main_w1 at W.md: failed: no tag: the output ends with "no tag"; write <goto>STATE</goto> or <result>YOUR RESULT</result>
    "#);
}

#[test]
fn denied_tools_warn_after_every_outcome() {
    let denied = || vec!["Bash(make)".to_owned()];
    let (cost, failure) = (Cost::Unknown, TurnFailure::Task { why: "no".into() });
    for outcome in [
        Outcome::Capped { cost, progressed: true, denied: denied(), session: None },
        Outcome::Failed { failure, cost, denied: denied(), session: None },
    ] {
        let mut play = Play::new(prompts(&["A.md"])).started();
        let settled = play.settled("main", outcome);
        let told = play.feed(vec![settled]);
        assert!(told.contains("warn main: the client denied Bash(make)"), "{told}");
    }
}
