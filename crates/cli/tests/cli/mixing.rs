//! Runs with several backends. Replies stand in for all of them, and the rules between them hold.

use crate::harness::Project;

const CLAUDE: &str = "---\nbackend: claude\n---\ngo on: {{result}}";
const CODEX: &str = "---\nbackend: codex\n---\nlook: {{input}}";

#[test]
fn what_backends_cannot_do_is_told_at_once_and_before_anything_is_created() {
    let front = "---
backend: claude
allowed_targets:
  goto: [OTHER]
  function: [{child: OTHER, return: OTHER}]
---
go";
    let project = Project::of(&[
        ("wf/START.md", front),
        ("wf/OTHER.md", "---\nbackend: codex\ndeny: [WebFetch]\n---\ngo"),
        ("wf/TYPO.md", "---\nbackend: cladue\n---\ngo"),
        ("r.yaml", "START: hello"),
    ]);
    project.raymond("run wf --replies r.yaml").prints("").says(
        2,
        "wf/OTHER.md:3:1: error: codex keeps no lists of allowed and denied tools: `deny` asks for it [backend-lacks]
        hint: leave it out and set `permission_mode`, or let another backend answer this state
        wf/START.md:4:10: error: `goto` to OTHER.md would go on in a conversation of claude, and codex answers OTHER.md [other-backend]
        hint: reach OTHER.md by `reset`, `function` or `fork`: they begin a conversation
        wf/START.md:5:37: error: the `return` of `function` to OTHER.md would go on in a conversation of claude, and codex answers OTHER.md [other-backend]
        hint: return to a state that claude answers
        wf/TYPO.md:2:1: error: there is no backend \"cladue\" [unknown-backend]
        hint: did you mean `claude`?
        raymond: the workflow has 4 mistakes",
    );
    assert!(!project.path(".raymond").exists());
}

#[test]
fn flags_ask_of_every_backend_what_they_say() {
    let project = Project::of(&[("wf/START.md", CODEX), ("r.yaml", "START: <result>x</result>")]);
    project.raymond("run wf --replies r.yaml --deny WebFetch").prints("").says(
        2,
        "wf: error: codex keeps no lists of allowed and denied tools, and the run denies WebFetch (codex answers START.md) [backend-lacks]
        hint: leave out `deny` and set `permission_mode`, or let another backend answer
        raymond: the workflow has a mistake",
    );
    let warning = "wf: warning: codex keeps no lists of allowed and denied tools: it is not told \
                   that the run allows Edit (codex answers START.md) [backend-lacks]";
    let allowed = project.raymond("run wf --replies r.yaml --allow Edit --run-id r");
    allowed.prints("x\n").mentions(0, &[warning]);
}

#[test]
fn a_model_without_a_price_is_refused_by_a_backend_that_only_counts_tokens() {
    let state = "---\nbackend: codex\nmodel: house-model\n---\ngo";
    let project = Project::of(&[("wf/START.md", CODEX), ("named/START.md", state)]);
    let refused = "raymond: START.md: the model \"house-model\" has no price, so codex cannot be held to a budget
        hint: put [prices.\"house-model\"] into the configuration, or run it with --budget none and no `budget` in the state";
    project.raymond("run named --budget 0.05").prints("").says(2, refused);
    project.raymond("run wf --model house-model").prints("").says(2, refused);
    assert!(!project.path(".raymond").exists());
}

#[test]
fn the_backend_of_flags_and_configuration_must_exist() {
    let project = Project::of(&[("wf/START.md", "go"), ("wf/S.sh", "echo '<result>x</result>'")]);
    project.raymond("run wf --backend gemini").says(
        2,
        "wf: error: there is no backend \"gemini\" [unknown-backend]
        hint: there are claude, codex and scripted
        raymond: the workflow has a mistake",
    );
    // Whoever is never asked need not be there.
    std::fs::remove_file(project.path("wf/START.md")).unwrap();
    project.raymond("run wf/S.sh --backend gemini").prints("x\n");
}

/// What an agent is told, and what it does then, is played to its end.
#[test]
fn a_tag_that_crosses_is_answered_with_a_reminder_that_names_what_would_work() {
    let project = Project::of(&[
        ("wf/START.md", CLAUDE),
        ("wf/BACK.md", CLAUDE),
        ("wf/OTHER.md", CODEX),
        (
            "r.yaml",
            r#"
START:
  - - <goto>OTHER</goto>
    - text: <function return="OTHER">OTHER</function>
      expect: [which claude holds, "<reset>, <function> or <fork>"]
    - text: <function return="BACK" input="please">OTHER</function>
      expect: OTHER.md would go on in this conversation
OTHER: { text: <result>fine</result>, expect: "look: please" }
BACK: { text: <result>done</result>, expect: "go on: fine" }
"#,
        ),
    ]);
    project.raymond("run wf --replies r.yaml --run-id r").prints("done\n");
    let lanes = project.events("r", "turn_queued");
    let backends: Vec<_> = lanes.iter().map(|queued| &queued["lane"]["prompt"]).collect();
    assert_eq!(backends, ["claude", "claude", "claude", "codex", "claude"]);
}

#[test]
fn a_script_that_carries_a_conversation_elsewhere_fails_its_agent() {
    let project = Project::of(&[
        ("wf/START.md", CLAUDE),
        ("wf/S.sh", "echo '<goto>OTHER</goto>'"),
        ("wf/OTHER.md", CODEX),
        ("r.yaml", "START: <goto>S</goto>\nOTHER: <result>x</result>"),
    ]);
    project.raymond("run wf --replies r.yaml --run-id r").mentions(
        1,
        &["S.sh: failed: <goto>: OTHER.md is answered by codex, and claude holds the conversation"],
    );
}

/// Fails in the conversation of claude.
fn failed() -> Project {
    let project = Project::of(&[
        ("wf/START.md", CLAUDE),
        ("wf/NEXT.md", CLAUDE),
        ("r.yaml", "START: <goto>NEXT</goto>\nNEXT: { fail: task }"),
        ("good.yaml", "START: <result>x</result>\nNEXT: <result>done</result>"),
    ]);
    project.raymond("run wf --replies r.yaml --run-id r").mentions(1, &["NEXT.md: failed"]);
    project
}

#[test]
fn edits_that_give_a_conversation_away_are_refused_and_change_nothing() {
    let project = failed();
    project.write("wf/NEXT.md", CODEX);
    let before = project.read(".raymond/runs/r/journal.jsonl");
    let refused =
        "raymond: main has a conversation of claude for NEXT.md, which codex would answer now
        hint: let it answer, or `raymond resume r --pinned`";
    project.raymond("resume r --with-current --replies good.yaml").says(2, refused);
    project.raymond("resume r --with-current --plan").says(2, refused);
    assert_eq!(project.read(".raymond/runs/r/journal.jsonl"), before);
    project.raymond("resume r --pinned --replies good.yaml").prints("done\n");
}

#[test]
fn a_turn_that_only_opens_a_conversation_may_move() {
    let project = Project::of(&[
        ("wf/START.md", CLAUDE),
        ("r.yaml", "START: { fail: task }"),
        ("good.yaml", "START: <result>done</result>"),
    ]);
    project.raymond("run wf --replies r.yaml --run-id r").mentions(1, &["START.md: failed"]);
    project.write("wf/START.md", CODEX);
    project
        .raymond("resume r --with-current --replies good.yaml")
        .prints("done\n")
        .mentions(0, &["START.md begins anew with codex: claude was to answer it before"]);
}

#[test]
fn a_resume_with_another_backend_keeps_conversations_where_they_are() {
    let project = Project::of(&[
        ("wf/START.md", "go"),
        ("wf/NEXT.md", "go"),
        ("r.yaml", "START: <goto>NEXT</goto>\nNEXT: { fail: task }"),
    ]);
    project.raymond("run wf --replies r.yaml --run-id r").mentions(1, &["NEXT.md: failed"]);
    project.raymond("resume r --backend claude").says(
        2,
        "raymond: main has a conversation of scripted for NEXT.md, which claude would answer now
        hint: a conversation stays with its backend: go on without --backend",
    );
}

#[test]
fn an_unpinned_run_does_not_take_up_what_its_backends_cannot_do() {
    let project = Project::of(&[
        ("wf/START.md", CLAUDE),
        ("wf/S.sh", "cp new.md wf/NEXT.md; echo '<goto>NEXT</goto>'"),
        ("wf/NEXT.md", CLAUDE),
        ("new.md", "---\nbackend: gemini\n---\ngo"),
        ("r.yaml", "START: <goto>S</goto>\nNEXT: <result>as before</result>"),
    ]);
    project
        .raymond("run wf --replies r.yaml --run-id r --unpinned")
        .prints("as before\n")
        .mentions(0, &["goes on with the states as they were", "there is no backend \"gemini\""]);
}
