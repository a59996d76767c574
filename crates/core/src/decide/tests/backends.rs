//! Several backends in one run: a conversation stays with the backend whose turn opened it.

use insta::assert_snapshot;

use super::play::{Play, workflow};
use crate::agent::{Agent, AgentStatus};
use crate::failure::{AgentFailure, TurnFailure};
use crate::ids::BackendName;
use crate::run::Settings;
use crate::run::settings::Pinning;

const CODEX: &str = "---\nbackend: codex\n---\ntext";

/// `A` and `B` are answered by claude, `X` and `Y` by codex; `S` is a script.
fn stage() -> Play {
    staged(&[])
}

fn staged(more: &[(&str, &str)]) -> Play {
    let files =
        [("A.md", "text"), ("B.md", "text"), ("X.md", CODEX), ("Y.md", CODEX), ("S.sh", "true")];
    let others = files.into_iter().filter(|(name, _)| more.iter().all(|other| other.0 != *name));
    let mut files: Vec<_> = others.chain(more.iter().copied()).collect();
    files.sort_unstable();
    Play::new(workflow(&files)).with(|s| s.max_parallel = 1).started()
}

/// Describes `main` in one line.
fn outcome(events: &str) -> &str {
    let is_reported = |line: &&str| line.starts_with("remind") || line.starts_with("main fails");
    events.lines().find(is_reported).unwrap_or("taken")
}

#[test]
fn only_a_fresh_conversation_may_change_its_backend() {
    let check = |text: &str, expected: &str| {
        let events = stage().says("main", text);
        assert_eq!(outcome(&events), expected, "{text}");
    };
    let crosses = |tag: &str, state: &str| {
        format!(
            "remind main (1): <{tag}>: {state} is answered by codex, but the conversation belongs to claude"
        )
    };
    check("<goto>B</goto>", "taken");
    check("<goto>X</goto>", &crosses("goto", "X.md"));
    check("<goto>S</goto>", "taken");
    check("<reset>X</reset>", "taken");
    check(r#"<call return="A">B</call>"#, "taken");
    check(r#"<call return="A">X</call>"#, &crosses("call", "X.md"));
    check(r#"<call return="A">S</call>"#, "taken");
    check(r#"<call return="X">B</call>"#, &crosses("call", "X.md"));
    check(r#"<function return="A">X</function>"#, "taken");
    check(r#"<function return="Y">X</function>"#, &crosses("function", "Y.md"));
    check(r#"<function return="S">X</function>"#, "taken");
    check(r#"<fork next="B">X</fork>"#, "taken");
    check(r#"<fork next="X">B</fork>"#, &crosses("fork", "X.md"));
    check(r#"<fork next="X">B</fork><fork next="X">Y</fork>"#, &crosses("fork", "X.md"));
    check("<fork>X</fork><fork>X</fork><goto>B</goto>", "taken");
    check("<fork>B</fork><fork>B</fork><goto>Y</goto>", &crosses("fork", "Y.md"));
    check("<result>done</result>", "taken");
}

#[test]
fn function_returns_into_its_callers_conversation() {
    let mut play = stage();
    play.says("main", r#"<function return="B">X</function>"#);
    assert_eq!(play.plan_of("main"), "fresh main.2.1");
    assert_eq!(play.agent("main").holder, None);
    // Within the function the backends are swapped.
    let events = play.says("main", "<goto>A</goto>");
    assert_eq!(
        outcome(&events),
        "remind main (1): <goto>: A.md is answered by claude, but the conversation belongs to codex"
    );
    play.says("main", "<goto>Y</goto>");
    assert_snapshot!(play.says("main", "<result>fine</result>"), @r#"
    settle main.3.1 #1 $0.10: at main.2.1
    main result: at main.1.1, pop, in /home
    main enters B.md (1) as visit 4 with "fine"
    queue main.4.1 at 3 for claude: resume main.1.1
    start main.4.1 #1 with $9.60: resume main.1.1
    "#);
    assert_eq!(play.agent("main").holder, Some(BackendName::new("claude")));
}

/// Journals that are older than this rule contain enough to apply it.
#[test]
fn conversation_backend_follows_from_turns_alone() {
    let mut play = stage();
    play.says("main", r#"<function return="B">X</function>"#);
    let holder = |play: &Play| play.agent("main").stack[0].holder.clone();
    assert_eq!(holder(&play), Some(BackendName::new("claude")));
    assert!(!serde_json::to_string(&play.story).unwrap().contains("holder"));
}

#[test]
fn reset_in_a_function_keeps_the_callers_session() {
    let mut play = stage();
    play.says("main", r#"<function return="B">X</function>"#);
    play.says("main", "<reset>A</reset>");
    play.says("main", r#"<function return="A">Y</function>"#);
    play.says("main", "<result>in</result>");
    assert_eq!(play.plan_of("main"), "resume main.3.1");
    play.says("main", "<result>out</result>");
    assert_eq!(play.plan_of("main"), "resume main.1.1");
}

#[test]
fn script_carries_the_conversation_to_its_backend() {
    let mut play = stage();
    play.says("main", "<goto>S</goto>");
    assert_snapshot!(play.says("main", "<goto>X</goto>"), @"
    settle main.2.1 #1: at main.1.1
    main fails: <goto>: X.md is answered by codex, but the conversation belongs to claude: enter it by <reset>, <function> or <fork>, or name a state that claude answers
    ended: Failed
    ");
    // Without a conversation there is nothing to hold.
    let files = [("S.sh", "true"), ("A.md", "text"), ("X.md", CODEX)];
    let mut play = Play::new(workflow(&files)).started();
    play.says("main", "<goto>X</goto>");
    assert_eq!(play.plan_of("main"), "fresh main.2.1");
    // A script of a call carries a branch.
    let mut play = stage();
    play.says("main", r#"<call return="A">S</call>"#);
    let events = play.says("main", "<goto>X</goto>");
    assert_eq!(
        outcome(&events),
        "main fails: <goto>: X.md is answered by codex, but the conversation belongs to claude: enter it \
         by <reset>, <function> or <fork>, or name a state that claude answers"
    );
}

#[test]
fn limit_leading_to_another_backend_fails_the_agent() {
    let limited = ("B.md", "---\nmax_visits: 1\nthen: X\n---\ntext");
    let check = |text: &str, expected: &str| {
        let mut play = staged(&[limited]);
        play.says("main", "<goto>B</goto>");
        assert_eq!(outcome(&play.says("main", text)), expected, "{text}");
        play
    };
    // The agent did nothing wrong, so it is not reminded.
    let fails = "main fails: B.md reached its visit limit, but its `then`, X.md, is answered \
                 by codex, and the conversation belongs to claude, kept";
    check("<goto>B</goto>", fails);
    check(r#"<call return="A">B</call>"#, fails);
    check(r#"<fork next="B">A</fork>"#, fails);
    // A fresh conversation can be opened there.
    let play = check("<reset>B</reset>", "taken");
    assert_eq!(play.agent("main").visit.location.to_string(), "X.md");
    check(r#"<function return="A">B</function>"#, "taken");
}

#[test]
fn edited_limit_continues_without_another_turn() {
    let limited = |front: &str| staged(&[("B.md", &format!("---\n{front}\n---\ntext"))]);
    let mut play = limited("max_visits: 1\nthen: X");
    play.says("main", "<goto>B</goto>");
    play.says("main", "<goto>B</goto>");
    play.adopt(limited("max_visits: 1\nthen: A").definition);
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    main goto: at main.1.1, instead of B.md
    main enters A.md (2) as visit 3
    queue main.3.1 at 2 for claude: resume main.1.1
    start main.3.1 #1 with $9.80: resume main.1.1
    ");
}

#[test]
fn tag_naming_another_backends_state_is_a_fault() {
    let mut play = staged(&[("X.md", "---\nbackend: codex\nmax_visits: 1\nthen: Y\n---\ntext")]);
    play.says("main", "<reset>X</reset>");
    play.says("main", "<reset>A</reset>");
    assert_eq!(
        outcome(&play.says("main", "<goto>X</goto>")),
        "remind main (1): <goto>: X.md is answered by codex, but the conversation belongs to claude"
    );
}

#[test]
fn return_redirected_to_another_backend_keeps_its_result() {
    let limited = ("B.md", "---\nmax_visits: 1\nthen: X\n---\ntext");
    let mut play = staged(&[limited]);
    play.says("main", "<goto>B</goto>");
    play.says("main", r#"<function return="B">Y</function>"#);
    assert_snapshot!(play.says("main", "<result>paid</result>"), @"
    settle main.3.1 #1 $0.10: at main.3.1
    main fails: B.md reached its visit limit, but its `then`, X.md, is answered by codex, and the conversation belongs to claude, kept
    ended: Failed
    ");
    let AgentStatus::Failed { failure, kept: Some(_) } = &play.agent("main").status else {
        panic!("the result is not kept");
    };
    let expected = AgentFailure::OtherBackend {
        state: "X.md".into(),
        answers: "codex".into(),
        holds: "claude".into(),
        instead_of: Some("B.md".into()),
    };
    assert_eq!(*failure, expected);
    // Once the limit is removed, the kept result is delivered without another paid turn.
    play.adopt(staged(&[]).definition);
    assert_snapshot!(play.resume(), @r#"
    resumed
    revive main
    main result: at main.1.1, pop, in /home
    main enters B.md (2) as visit 4 with "paid"
    queue main.4.1 at 3 for claude: resume main.1.1
    start main.4.1 #1 with $9.70: resume main.1.1
    "#);
}

#[test]
fn a_backend_that_cannot_branch_refuses_a_call() {
    let mut play = stage();
    play.run.settings.no_branch.insert("claude".into());
    let events = play.says("main", r#"<call return="A">B</call>"#);
    assert_eq!(outcome(&events), "remind main (1): <call>: claude cannot branch a conversation");
    assert_eq!(outcome(&play.says("main", r#"<function return="A">X</function>"#)), "taken");
    assert_eq!(outcome(&play.says("main", r#"<call return="X">Y</call>"#)), "taken");
}

#[test]
fn edits_must_not_move_a_conversation() {
    let moved = |name: &str| staged(&[(name, CODEX)]).definition;
    let check = |play: &mut Play, name: &str, expected: &str| {
        assert_eq!(play.adopt(moved(name)), expected, "{name}");
    };
    let mut play = stage();
    play.says("main", "<goto>B</goto>");
    play.fails("main", TurnFailure::Task { why: "no".into() });
    let refused = |state: &str| {
        format!(
            "refused: main has a conversation of claude for {state}, which codex would answer now"
        )
    };
    check(&mut play, "B.md", &refused("B.md"));
    check(&mut play, "A.md", "adopted v2");

    let mut play = stage();
    play.says("main", r#"<function return="A">X</function>"#);
    play.halt();
    check(&mut play, "A.md", &refused("A.md"));

    // A settled turn has left its conversation with the agent.
    let mut play = stage().with(|s| s.reminders = 0);
    play.resume();
    play.says("main", "no tag");
    check(&mut play, "A.md", &refused("A.md"));
}

#[test]
fn opening_turn_may_change_backend_at_rest() {
    let moved = || staged(&[("A.md", CODEX)]).definition;
    let mut play = stage();
    assert_eq!(
        play.adopt(moved()),
        "refused: main has a conversation of claude for A.md, which codex would answer now"
    );
    play.fails("main", TurnFailure::Task { why: "no".into() });
    play.adopt(moved());
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    warn main: A.md starts again with codex, because claude answered it before
    queue main.1.2 Revived at 1 for codex: fresh main.1.2
    start main.1.2 #1 with $9.90: fresh main.1.2
    ");

    let mut play = stage();
    play.halt();
    play.adopt(moved());
    assert_snapshot!(play.resume(), @"
    resumed
    warn main: A.md starts again with codex, because claude answered it before
    queue main.1.2 Revived at 1 for codex: fresh main.1.2
    start main.1.2 #1 with $9.90: fresh main.1.2
    ");
}

#[test]
fn unpinned_visit_keeps_its_backend() {
    let moved = || staged(&[("B.md", CODEX)]).definition;
    let unpinned = || {
        let mut play = stage();
        play.settings.definition = Pinning::Unpinned;
        play.run.settings.definition = Pinning::Unpinned;
        play
    };
    // A turn in flight stays with its backend.
    let mut play = unpinned();
    play.adopt(staged(&[("A.md", CODEX)]).definition);
    assert_snapshot!(play.resume(), @"resumed");

    let mut play = unpinned();
    play.says("main", "<goto>B</goto>");
    assert_eq!(play.adopt(moved()), "adopted v2");
    play.says("main", "no tag");
    assert_eq!(play.plan_of("main"), "resume main.1.1");
    play.halt();
    assert_snapshot!(play.resume(), @"
    resumed
    queue main.2.2 again at 2: Interrupted
    start main.2.2 #2 with $9.70: resume main.1.1
    ");
    play.fails("main", TurnFailure::Task { why: "no".into() });
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.2.3 Revived at 3 for claude: resume main.1.1
    start main.2.3 #1 with $9.60: resume main.1.1
    ");
    assert_eq!(
        outcome(&play.says("main", "<goto>B</goto>")),
        "remind main (1): <goto>: B.md is answered by codex, but the conversation belongs to claude"
    );

    // This also holds when its turns are settled and only the conversation is left.
    let mut play = unpinned();
    play.settings.reminders = 0;
    play.run.settings.reminders = 0;
    play.says("main", "<goto>B</goto>");
    assert_eq!(play.adopt(moved()), "adopted v2");
    play.says("main", "no tag");
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    queue main.2.2 Revived at 2 for claude: resume main.1.1
    start main.2.2 #1 with $9.80: resume main.1.1
    ");

    let mut play = unpinned();
    play.says("main", r#"<function return="B">X</function>"#);
    assert_eq!(
        play.adopt(moved()),
        "refused: main has a conversation of claude for B.md, which codex would answer now"
    );
}

#[test]
fn settings_must_not_move_a_conversation() {
    let mut play = stage();
    play.says("main", "<goto>B</goto>");
    play.halt();
    play.settings.backend = "codex".into();
    assert_eq!(
        play.resume(),
        "refused: main has a conversation of claude for B.md, which codex would answer now"
    );
    let mut play = stage();
    play.halt();
    play.settings.backend = "codex".into();
    assert_snapshot!(play.resume(), @"
    resumed
    warn main: A.md starts again with codex, because claude answered it before
    queue main.1.2 Revived at 1 for codex: fresh main.1.2
    start main.1.2 #1 with $9.90: fresh main.1.2
    ");
    assert_eq!(play.prompt().backend.as_str(), "codex");
}

#[test]
fn scripted_backend_replaces_one_backend_only() {
    let check = |replayed_backend: Option<&str>, backend: &str, expected: &str| {
        let settings = Settings {
            backend: "scripted".into(),
            replayed_backend: replayed_backend.map(BackendName::new),
            ..Settings::default()
        };
        assert_eq!(settings.real_backend(&backend.into()).as_str(), expected);
    };
    check(Some("claude"), "scripted", "claude");
    check(Some("claude"), "codex", "codex");
    check(None, "scripted", "scripted");
}

#[test]
fn model_of_a_tag_belongs_to_its_backend() {
    let check = |texts: &[&str], expected: &[&str]| {
        let mut play = stage().with(|s| s.model = Some("usual".into()));
        play.run.settings.model = Some("usual".into());
        let reported = |play: &Play| {
            let (location, model) = (play.started_turn().header.location, play.prompt().model);
            format!("{location} {}", model.as_deref().unwrap_or("-"))
        };
        let mut seen = Vec::new();
        for text in texts {
            play.says("main", text);
            if play.agent("main").visit.location.to_string() != "S.sh" {
                seen.push(reported(&play));
            }
        }
        assert_eq!(seen, expected, "{texts:?}");
    };
    let haiku = r#"<function return="A" model="haiku">B</function>"#;
    let codex = r#"<function return="B">X</function>"#;
    let done = "<result>x</result>";
    // States of another backend do not use the model, but pass it on.
    check(&[haiku, codex, done, done], &["B.md haiku", "X.md usual", "B.md haiku", "A.md usual"]);
    let within = r#"<function return="Y">A</function>"#;
    check(&[haiku, codex, within], &["B.md haiku", "X.md usual", "A.md haiku"]);
    check(
        &[haiku, "<reset>X</reset>", "<reset>A</reset>"],
        &["B.md haiku", "X.md usual", "A.md haiku"],
    );
    let gpt = r#"<function return="A" model="gpt">X</function>"#;
    check(&[gpt, "<goto>Y</goto>", "<reset>B</reset>"], &["X.md gpt", "Y.md gpt", "B.md usual"]);
    // A script has no backend, so the model belongs to the next prompt's backend.
    let script = r#"<function return="A" model="gpt">S</function>"#;
    check(&[script, "<goto>X</goto>", "<reset>B</reset>"], &["X.md gpt", "B.md usual"]);
    check(&[script, "<goto>B</goto>", "<reset>X</reset>"], &["B.md gpt", "X.md usual"]);
}

/// Older journals do not contain this field.
#[test]
fn model_without_a_backend_fits_any_backend() {
    let mut play = stage();
    play.says("main", r#"<function return="A" model="haiku">X</function>"#);
    let agent = play.run.agents.get_mut(&"main".into()).unwrap();
    let model = |agent: &Agent| agent.model_for(&"claude".into()).cloned();
    assert_eq!(model(agent), None);
    agent.model_of = None;
    assert_eq!(model(agent), Some("haiku".to_owned()));
}
