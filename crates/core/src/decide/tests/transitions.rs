//! The effect of each tag on session, stack, working directory and model.

use insta::assert_snapshot;

use super::play::{Play, prompts, turn, workflow};
use crate::decide::effects;
use crate::protocol::ResultStatus;
use crate::run::turn_spec::{Extras, TimeLimits, TurnSpec, Work};

/// Lets `main` emit `text` at A, where it has a conversation, and checks `main` afterwards.
fn check(text: &str, expected: &str, plan: &str) {
    let files = [("A.md", "text"), ("B.md", "text"), ("C.md", "text"), ("RUN.sh", "true")];
    let mut play = Play::new(workflow(&files)).started();
    play.says("main", text);
    assert_eq!(
        (play.shows("main").as_str(), play.plan_of("main").as_str()),
        (expected, plan),
        "{text}"
    );
}

#[test]
fn every_tag_has_its_own_effect() {
    check("<goto>B</goto>", "B.md | at main.1.1 | /home", "resume main.1.1");
    check("<reset>B</reset>", "B.md | fresh | /home", "fresh main.2.1");
    check(r#"<reset cd="sub">B</reset>"#, "B.md | fresh | /home/sub", "fresh main.2.1");
    check(r#"<reset cd="/tmp">B</reset>"#, "B.md | fresh | /tmp", "fresh main.2.1");
    check(
        r#"<call return="C">B</call>"#,
        "B.md | branch of main.1.1 | /home < C.md (at main.1.1, /home)",
        "branch main.1.1 to main.2.1",
    );
    check(
        r#"<call return="C" model="opus">B</call>"#,
        "B.md | branch of main.1.1 | /home | opus < C.md (at main.1.1, /home)",
        "branch main.1.1 to main.2.1",
    );
    check(
        r#"<function return="C">B</function>"#,
        "B.md | fresh | /home < C.md (at main.1.1, /home)",
        "fresh main.2.1",
    );
    check(
        r#"<function return="C" model="opus">B</function>"#,
        "B.md | fresh | /home | opus < C.md (at main.1.1, /home)",
        "fresh main.2.1",
    );
    check(r#"<fork next="C">B</fork>"#, "C.md | at main.1.1 | /home", "resume main.1.1");
    // A script carries any session.
    check("<goto>RUN</goto>", "RUN.sh | at main.1.1 | /home", "carry");
    check("<reset>RUN</reset>", "RUN.sh | fresh | /home", "carry");
    check(
        r#"<call return="C">RUN</call>"#,
        "RUN.sh | branch of main.1.1 | /home < C.md (at main.1.1, /home)",
        "carry",
    );
}

#[test]
fn goto_is_decided_in_one_step() {
    let mut play = Play::new(prompts(&["A.md", "B.md"]));
    assert_snapshot!(play.start(), @"
    started play
    spawn main in /home
    main enters A.md (1) as visit 1
    queue main.1.1 at 0 for claude: fresh main.1.1
    start main.1.1 #1 with $10.00: fresh main.1.1
    ");
    assert_snapshot!(play.says("main", "<goto>B</goto>"), @"
    settle main.1.1 #1 $0.10: at main.1.1
    main goto: at main.1.1
    main enters B.md (1) as visit 2
    queue main.2.1 at 1 for claude: resume main.1.1
    start main.2.1 #1 with $9.90: resume main.1.1
    ");
    assert_snapshot!(play.says("main", "<result>done</result>"), @r#"
    settle main.2.1 #1 $0.10: at main.1.1
    main ends: "done"
    ended: Completed
    "#);
    assert_snapshot!(play.scene(), @"Ended(Completed): $0.20 spent");
}

#[test]
fn scripts_carry_the_session_unchanged_between_prompts() {
    let files = [("A.md", "text"), ("RUN.sh", "true"), ("B.md", "text")];
    let mut play = Play::new(workflow(&files)).started();
    play.says("main", "<goto>RUN</goto>");
    play.says("main", "<goto>B</goto>");
    assert_eq!(play.plan_of("main"), "resume main.1.1");
}

#[test]
fn callee_after_a_script_never_resumes_caller() {
    let files = [("A.md", "text"), ("RUN.sh", "true"), ("B.md", "text"), ("C.md", "text")];
    let mut play = Play::new(workflow(&files)).started();
    play.says("main", r#"<call return="C">RUN</call>"#);
    play.says("main", "<goto>B</goto>");
    assert_eq!(play.plan_of("main"), "branch main.1.1 to main.3.1");
    play.says("main", "<goto>B</goto>");
    assert_eq!(play.plan_of("main"), "resume main.3.1");
    play.says("main", "<result>x</result>");
    assert_eq!(play.plan_of("main"), "resume main.1.1");
}

#[test]
fn call_from_a_script_branches_its_session() {
    let files = [("A.sh", "true"), ("B.md", "text"), ("C.md", "text")];
    let mut play = Play::new(workflow(&files)).started();
    play.says("main", r#"<call return="C">B</call>"#);
    // Nothing to branch from yet.
    assert_eq!(play.shows("main"), "B.md | fresh | /home < C.md (fresh, /home)");
    play.says("main", "<result>x</result>");
    assert_eq!(play.plan_of("main"), "fresh main.3.1");
}

#[test]
fn a_return_restores_session_directory_and_model() {
    let mut play = Play::new(prompts(&["A.md", "B.md", "C.md", "D.md"])).started();
    play.says("main", r#"<call return="C" model="opus">B</call>"#);
    play.says("main", r#"<function return="D" model="haiku">B</function>"#);
    play.says("main", r#"<reset cd="sub">B</reset>"#);
    assert_snapshot!(play.shows("main"), @"B.md | fresh | /home/sub | haiku < D.md (at main.2.1, /home, opus) < C.md (at main.1.1, /home)");
    play.says("main", "<result>one</result>");
    assert_snapshot!(play.shows("main"), @"D.md | at main.2.1 | /home | opus < C.md (at main.1.1, /home)");
    assert_snapshot!(play.says("main", "<result>two</result>"), @r#"
    settle main.5.1 #1 $0.10: at main.2.1
    main result: at main.1.1, pop, in /home
    main enters C.md (1) as visit 6 with "two"
    queue main.6.1 at 5 for claude: resume main.1.1
    start main.6.1 #1 with $9.50: resume main.1.1
    "#);
    assert_snapshot!(play.shows("main"), @"C.md | at main.1.1 | /home");
}

#[test]
fn nested_call_inherits_the_model() {
    let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
    play.says("main", r#"<call return="C" model="opus">B</call>"#);
    play.says("main", r#"<call return="C">B</call>"#);
    assert_eq!(play.agent("main").model.as_deref(), Some("opus"));
    play.says("main", r#"<fork next="C">B</fork>"#);
    assert_eq!(play.agent("main").model.as_deref(), Some("opus"));
    assert_eq!(play.agent("main_b1").model, None);
}

#[test]
fn state_then_call_then_settings_choose_the_model() {
    let check = |front: &str, text: &str, settings: Option<&str>, expected: Option<&str>| {
        let target = format!("{front}text");
        let files = [("A.md", "text"), ("B.md", target.as_str())];
        let play = Play::new(workflow(&files)).with(|s| s.model = settings.map(str::to_owned));
        let mut play = play.started();
        play.says("main", text);
        assert_eq!(play.prompt().model.as_deref(), expected, "{front}{text}");
    };
    let call = r#"<call return="A" model="opus">B</call>"#;
    check("---\nmodel: own\n---\n", call, Some("flag"), Some("own"));
    check("", call, Some("flag"), Some("opus"));
    check("", "<goto>B</goto>", Some("flag"), Some("flag"));
    check("", "<goto>B</goto>", None, None);
}

#[test]
fn state_overrides_timeouts_and_effort() {
    let front = "---\neffort: high\ntimeout: 90s\n---\ntext";
    let play = Play::new(workflow(&[("A.md", "text"), ("B.md", front)]));
    let mut play = play.with(|settings| {
        settings.effort = Some("low".into());
        settings.timeout = "10m".parse().ok();
        settings.idle_timeout = "5m".parse().ok();
    });
    let shown = |play: &Play| {
        let prompt = play.prompt();
        let clocks = [prompt.limits.timeout, prompt.limits.idle_timeout];
        let clocks = clocks.map(|clock| clock.unwrap().to_string());
        format!("{} {}", prompt.effort.unwrap(), clocks.join(" "))
    };
    play.start();
    assert_eq!(shown(&play), "low 10m 5m");
    play.says("main", "<goto>B</goto>");
    assert_eq!(shown(&play), "high 90s 5m");
}

#[test]
fn client_options_are_passed_on_as_written() {
    let front =
        "---\nadd_dirs: [../docs]\nmcp_config: mcp.json\nappend_system_prompt: be brief\n---\nx";
    let play = Play::new(workflow(&[("A.md", front)])).started();
    let expected = Extras {
        add_dirs: vec!["../docs".into()],
        mcp_config: Some("mcp.json".into()),
        append_system_prompt: Some("be brief".into()),
    };
    assert_eq!(play.prompt().extras, expected);
}

#[test]
fn script_runs_with_its_states_settings() {
    let play = Play::new(workflow(&[("A.sh", "true")]));
    let play = play.with(|settings| settings.timeout = "10m".parse().ok()).started();
    let TurnSpec { header, work } = play.started_turn();
    assert_eq!((header.turn, header.attempt), (turn("main.1.1"), 1));
    assert_eq!((header.cwd.as_str(), header.environment), ("/home", None));
    let Work::Script(script) = work else { panic!("{work:?}") };
    assert_eq!((script.source.name.as_str(), &*script.source.bytes), ("A.sh", &b"true"[..]));
    assert_eq!(script.values.state.as_str(), "A.sh");
    let timeout = "10m".parse().ok();
    assert_eq!(script.limits, TimeLimits { timeout, idle_timeout: None });
}

#[test]
fn only_the_attempt_in_flight_has_effects() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    let started = play.last.clone();
    let asks = |play: &Play| effects(&play.run, &play.definition, &started).len();
    assert_eq!(asks(&play), 1);
    // The same turn, another attempt.
    play.stumbles("main");
    play.after("1h".parse().unwrap());
    assert_eq!(asks(&play), 0);
    // Another turn, the same attempt.
    play.says("main", "<goto>A</goto>");
    assert_eq!(asks(&play), 0);
}

#[test]
fn clearing_the_stack_drops_returns_and_models() {
    let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
    play.says("main", r#"<reset stack="clear">A</reset>"#);
    assert!(!play.last.iter().any(|event| matches!(event, crate::run::Event::Warned { .. })));
    play.says("main", r#"<call return="C" model="opus">B</call>"#);
    assert_snapshot!(play.says("main", r#"<reset stack="clear">B</reset>"#), @r#"
    settle main.3.1 #1 $0.10: at main.3.1
    main reset: fresh, clear
    warn main: stack="clear" dropped 1 pending return
    main enters B.md (2) as visit 4
    queue main.4.1 at 3 for claude: fresh main.4.1
    start main.4.1 #1 with $9.70: fresh main.4.1
    "#);
    assert_eq!(play.shows("main"), "B.md | fresh | /home");
    assert_snapshot!(play.says("main", "<result>x</result>"), @r#"
    settle main.4.1 #1 $0.10: at main.4.1
    main ends: "x"
    ended: Completed
    "#);
}

#[test]
fn an_input_is_delivered_like_a_result() {
    let check = |text: &str, expected: Option<&str>| {
        let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
        play.says("main", text);
        let input = play.agent("main").visit.input.clone();
        assert_eq!(input, expected.map(Into::into), "{text}");
    };
    check(r#"<goto input="x">B</goto>"#, Some("x"));
    check(r#"<reset input="x">B</reset>"#, Some("x"));
    check(r#"<call return="C" input="x">B</call>"#, Some("x"));
    check(r#"<function return="C" input="x">B</function>"#, Some("x"));
    check("<goto>B</goto>", None);
    let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
    play.says("main", r#"<call return="C">B</call>"#);
    play.says("main", "<result> raw &lt; </result>");
    assert_eq!(play.agent("main").visit.input, Some(" raw &lt; ".into()));
    // It is bound for one visit.
    play.says("main", "<goto>B</goto>");
    assert_eq!(play.agent("main").visit.input, None);
}

#[test]
fn client_may_name_its_own_session() {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    play.says_so("main", "<goto>B</goto>", |said| said.session = Some("theirs".into()));
    assert_eq!(play.plan_of("main"), "resume theirs");
}

#[test]
fn message_without_tag_takes_the_only_transition() {
    let check = |front: &str, text: &str, expected: &str| {
        let start = format!("---\nallowed_transitions:\n{front}---\ntext");
        let files = [("A.md", start.as_str()), ("B.md", "text"), ("C.md", "text")];
        let mut play = Play::new(workflow(&files)).started();
        play.says("main", text);
        assert_eq!(play.shows("main"), expected, "{front}{text}");
    };
    let stays = "A.md | at main.1.1 | /home";
    let goto = "  - {tag: goto, target: B}\n";
    check(goto, "done", "B.md | at main.1.1 | /home");
    check("  - {tag: reset, target: B}\n", "done", "B.md | fresh | /home");
    check(
        "  - {tag: call, target: B, return: C}\n",
        "done",
        "B.md | branch of main.1.1 | /home < C.md (at main.1.1, /home)",
    );
    check("  - {tag: fork, target: B, next: C}\n", "done", "C.md | at main.1.1 | /home");
    // Reminded: an entry that is not determined, one of several entries, a bare result.
    check("  - {tag: call, target: B}\n", "done", stays);
    check("  - {tag: goto, target: B}\n  - {tag: goto, target: C}\n", "done", stays);
    check("  - {tag: result}\n", "done", stays);
    // A malformed tag, or a tag in code beside other text, is not an absent tag.
    check(goto, "<goto>", stays);
    check(goto, "it is `<goto>B</goto>` that I mean", stays);
}

#[test]
fn failed_result_fails_an_agent_without_a_caller() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    assert_snapshot!(play.says("main", "<result status=\"failed\">no\nway</result>"), @"
    settle main.1.1 #1 $0.10: at main.1.1
    main fails: no / way
    ended: Failed
    ");
    // A resume repeats the visit, so that the agent decides again.
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.1.2 Revived at 1 for claude: resume main.1.1
    start main.1.2 #1 with $9.90: resume main.1.1
    ");
}

#[test]
fn caller_learns_the_status_of_a_result() {
    let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
    let check = |play: &mut Play, tag: &str, status: ResultStatus| {
        play.says("main", "<call return=\"C\">B</call>");
        play.says("main", tag);
        let visit = &play.agent("main").visit;
        assert_eq!((visit.location.to_string(), visit.result_status), ("C.md".into(), status));
        assert_eq!(visit.input, Some("x".into()));
    };
    check(&mut play, "<result status=\"failed\">x</result>", ResultStatus::Failed);
    check(&mut play, "<result>x</result>", ResultStatus::Ok);
    check(&mut play, "<result status=\"failed\">x</result>", ResultStatus::Failed);
    // The status belongs to one visit.
    play.says("main", "<goto>A</goto>");
    assert_eq!(play.agent("main").visit.result_status, ResultStatus::Ok);
}
