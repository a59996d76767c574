//! Runs with several backends. Replies answer for all of them, under the rules of the real ones.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::harness::Project;

const CLAUDE: &str = "---\nbackend: claude\n---\ngo on: {{result}}";
const CODEX: &str = "---\nbackend: codex\n---\nlook: {{input}}";

#[test]
fn unsupported_options_are_rejected_before_run_is_created() {
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
        "wf/OTHER.md:3:1: error: codex has no lists of allowed and denied tools: `deny` asks for it [backend-lacks]
        hint: leave it out and set `permission_mode`, or let another backend answer this state
        wf/START.md:4:10: error: `goto` to OTHER.md would continue a conversation of claude, but codex answers OTHER.md [other-backend]
        hint: reach OTHER.md by `reset`, `function` or `fork`: they begin a conversation
        wf/START.md:5:37: error: the `return` of `function`, OTHER.md, would continue a conversation of claude, but codex answers OTHER.md [other-backend]
        hint: return to a state that claude answers
        wf/TYPO.md:2:1: error: there is no backend \"cladue\" [unknown-backend]
        hint: did you mean `claude`?
        raymond: the workflow has 4 mistakes",
    );
    assert!(!project.path(".raymond").exists());
}

#[test]
fn unknown_option_values_are_reported_with_position() {
    let front = "---
backend: claude
allow: [cargo test]
allowed_transitions: [{tag: reset, target: OTHER}]
---
go";
    let other =
        "---\nbackend: codex\nmcp_config: '{}'\neffort: hgih\nallowed_tags: [result]\n---\ngo";
    let project = Project::of(&[
        ("wf/START.md", front),
        ("wf/OTHER.md", other),
        ("wf/LOST.md", "---\nbackend: codex\npermission_mode: auto\n---\ngo"),
        ("r.yaml", "START: hello"),
    ]);
    let message = "wf/LOST.md:3:1: warning: codex has no equivalent of the permission mode \"auto\" (nothing leads here) [backend-lacks]
        hint: the modes are acceptEdits, default, plan
        wf/OTHER.md:3:1: error: codex does not support mcp_config [backend-lacks]
        hint: configure the servers in its own config.toml, or use another backend
        wf/OTHER.md:4:1: error: codex has no effort \"hgih\" [backend-lacks]
        hint: the efforts are none, minimal, low, medium, high, xhigh, max, ultra
        wf/START.md:3:1: error: \"cargo test\" is not a tool rule [backend-lacks]
        hint: rules look like `Edit` or `Bash(cargo test:*)`
        raymond: the workflow has 3 mistakes";
    project.raymond("run wf").prints("").says(2, message);
    project.raymond("run wf --replies r.yaml").prints("").says(2, message);
    assert!(!project.path(".raymond").exists());
}

#[test]
fn run_options_are_reported_once_per_backend() {
    let own = "---\nbackend: codex\neffort: high\n---\ngo";
    let project = Project::of(&[("wf/START.md", CODEX), ("wf/OWN.md", own)]);
    project.raymond("run wf --effort hgih --permission-mode auto").prints("").says(
        2,
        "wf: error: codex has no equivalent of the permission mode \"auto\" (codex answers OWN.md, START.md) [backend-lacks]
        hint: the modes are acceptEdits, default, plan
        wf: error: codex has no effort \"hgih\" (codex answers OWN.md, START.md) [backend-lacks]
        hint: the efforts are none, minimal, low, medium, high, xhigh, max, ultra
        raymond: the workflow has 2 mistakes",
    );
    let project = Project::of(&[("wf/START.md", own)]);
    let heard = project.raymond("run wf --effort hgih --permission-mode auto");
    heard.prints("").mentions(2, &["the workflow has a mistake"]);
}

/// A workflow that is played today runs with a client tomorrow.
#[test]
fn options_are_checked_also_with_scripted_replies() {
    let check = |configuration: &str, flags: &str, expected: &str| {
        let project = Project::of(&[
            ("wf/START.md", "---\npermission_mode: auto\n---\ngo"),
            ("raymond.toml", configuration),
            ("r.yaml", "START: <result>x</result>"),
        ]);
        let played = project.raymond(&format!("run wf --replies r.yaml {flags}"));
        match expected {
            "" => played.prints("x\n").mentions(0, &[]),
            message => played.prints("").mentions(2, &[message]),
        };
    };
    check("", "", "");
    check("", "--effort huge", "wf: error: claude has no effort \"huge\"");
    let no_mode = "wf/START.md:2:1: error: codex has no equivalent of the permission mode \"auto\"";
    check("backend = 'codex'", "", no_mode);
    check("backend = 'codex'", "--backend scripted", no_mode);
    check("backend = 'scripted'", "--effort huge", "claude has no effort \"huge\"");
}

#[test]
fn model_for_several_backends_is_a_warning() {
    let check = |other: &str, flags: &str, expected: &str| {
        let project = Project::of(&[
            ("wf/START.md", "---\nbackend: claude\n---\ngo"),
            ("wf/OTHER.md", other),
            ("r.yaml", "START: <result>x</result>\nOTHER: <result>y</result>"),
        ]);
        let played = project.raymond(&format!("run wf --replies r.yaml --run-id r {flags}"));
        let (warnings, _) = played.prints("x\n").stderr.split_once("r: cap").unwrap();
        assert_eq!(warnings, expected, "{flags}");
    };
    let warning = "wf: warning: the model \"gpt-5.5\" applies to several backends: claude and codex [shared-model]
  hint: remove it and set `model` in the frontmatter of START.md, or of OTHER.md
";
    check(CODEX, "--model gpt-5.5", warning);
    check(CODEX, "", "");
    check("---\nbackend: codex\nmodel: gpt-5.5\n---\ngo", "--model opus", "");
    check(CLAUDE, "--model opus", "");
    check("---\nbackend: scripted\n---\ngo", "--model opus", "");
}

#[test]
fn options_of_one_backend_belong_into_its_states() {
    let project = Project::of(&[("wf/START.md", CLAUDE), ("wf/OTHER.md", CODEX)]);
    let instead = |key: &str| {
        format!("or write `{key}` into the frontmatter of START.md instead of asking it of all")
    };
    let words = "--model house --permission-mode auto --deny WebFetch --effort max";
    project.raymond(&format!("run wf {words}")).prints("").says(
        2,
        &format!(
            "wf: error: codex has no lists of allowed and denied tools, but the run denies WebFetch (codex answers OTHER.md) [backend-lacks]
            hint: leave out `deny` and set `permission_mode`, or let another backend answer; {}
            wf: error: codex has no equivalent of the permission mode \"auto\" (codex answers OTHER.md) [backend-lacks]
            hint: the modes are acceptEdits, default, plan; {}
            wf: error: the model \"house\" has no price, so codex cannot be held to a budget (codex answers OTHER.md) [backend-lacks]
            hint: put [prices.\"house\"] into the configuration, or run it with --budget none and no `budget` in the state; {}
            raymond: the workflow has 3 mistakes",
            instead("deny"), instead("permission_mode"), instead("model"),
        ),
    );
}

#[test]
fn client_of_unreachable_state_may_be_missing() {
    let project = Project::of(&[
        ("wf/START.md", "---\nbackend: scripted\nallowed_tags: [result]\n---\ngo"),
        ("wf/LOST.md", CODEX),
        ("r.yaml", "START: <result>x</result>"),
    ]);
    let nowhere = "no-such-client";
    let project = project.with("RAYMOND_CODEX", nowhere).with("RAYMOND_CLAUDE", nowhere);
    project.raymond("run wf --backend claude --replies r.yaml").prints("x\n");
    let reached = project.raymond("run wf/LOST.md --backend claude --replies r.yaml");
    reached.prints("").mentions(
        7,
        &["could not use codex for LOST.md: could not find the client no-such-client"],
    );
}

#[test]
fn client_without_remaining_work_may_be_missing() {
    let scripted = |policy: &str| format!("---\nbackend: scripted\n{policy}\n---\ngo");
    let check = |replies: &str, code: i32| {
        let project = Project::of(&[
            (
                "wf/START.md",
                &scripted(
                    "allowed_targets: {reset: [LOOK, LAST], function: [{child: LAST, return: BACK}]}",
                ),
            ),
            (
                "wf/BACK.md",
                &scripted("allowed_tags: [reset, result]\nallowed_targets: {reset: [LOOK]}"),
            ),
            ("wf/LAST.md", &scripted("allowed_tags: [result]")),
            ("wf/LOOK.md", "---\nbackend: codex\nallowed_tags: [result]\n---\nlook"),
            ("codex", "#!/bin/sh\necho codex-cli 0.166.0\n"),
            ("r.yaml", replies),
            (
                "good.yaml",
                "START: <reset>LAST</reset>\nLAST: <result>x</result>\nBACK: <result>x</result>",
            ),
        ]);
        let mode = Permissions::from_mode(0o755);
        std::fs::set_permissions(project.path("codex"), mode).unwrap();
        let project = project.with("RAYMOND_CODEX", "./codex");
        let run = "run wf --backend claude --replies r.yaml --run-id r";
        project.raymond(run).mentions(1, &["failed"]);
        std::fs::remove_file(project.path("codex")).unwrap();
        let resumed = project.raymond("resume r --backend claude --replies good.yaml");
        assert_eq!(resumed.code(), code, "{replies}: {resumed:?}");
    };
    // In turn: no path leads to the client, a path may lead to it, and the return leads to it.
    check("START: <reset>LAST</reset>\nLAST: { fail: task }", 0);
    check("START: { fail: task }", 7);
    check("START: <function return=\"BACK\">LAST</function>\nLAST: { fail: task }", 7);
}

/// Otherwise the run would fail only after the other client was paid.
#[test]
fn client_without_version_is_rejected_before_any_prompt() {
    let check = |script: &str, message: &str| {
        let claude = "echo \"$@\" >> \"$0.asked\"; echo '2.1.325 (Claude Code)'";
        let project = Project::of(&[
            ("wf/START.md", "---\nbackend: claude\n---\ngo"),
            ("wf/OTHER.md", CODEX),
            ("claude", &format!("#!/bin/sh\n{claude}\n")),
            ("codex", &format!("#!/bin/sh\n{script}\n")),
        ]);
        for client in ["claude", "codex"] {
            let mode = Permissions::from_mode(0o755);
            std::fs::set_permissions(project.path(client), mode).unwrap();
        }
        let project = project.with("RAYMOND_CLAUDE", "./claude").with("RAYMOND_CODEX", "./codex");
        let expected = format!(
            "raymond: could not use codex for OTHER.md: could not read the version of codex (/project/codex): {message}
            hint: try `/project/codex --version`, then set `codex` in the configuration to the path of the client"
        );
        project.raymond("run wf").prints("").says(7, &expected);
        assert_eq!(project.read("claude.asked"), "--version\n");
        assert!(!project.path(".raymond").exists());
    };
    check("echo no node >&2; exit 3", "exit status 3: no node");
    check("echo cat 9.4", "\"cat 9.4\" is not a version of codex");
    check("echo '2.1.325 (Claude Code)'", "\"2.1.325 (Claude Code)\" is not a version of codex");
    check("true", "it printed nothing");
}

#[test]
fn missing_client_is_reported_by_path() {
    let check = |client: &str, message: &str| {
        let project = Project::of(&[("wf/START.md", "go"), ("plain", "no program")]);
        let project = project.with("RAYMOND_CLAUDE", client);
        let message = format!("raymond: could not use claude for START.md: {message}\n");
        project.raymond("run wf").prints("").mentions(7, &[&message]);
    };
    check("/nowhere/claude", "could not find a program at /nowhere/claude");
    check("./bin/claude", "could not find a program at /project/bin/claude");
    check("./plain", "cannot run the client /project/plain: it is not an executable file");
    check("no-such", "could not find the client no-such on PATH");
}

#[test]
fn flags_are_checked_for_every_backend() {
    let project = Project::of(&[("wf/START.md", CODEX), ("r.yaml", "START: <result>x</result>")]);
    project.raymond("run wf --replies r.yaml --deny WebFetch").prints("").says(
        2,
        "wf: error: codex has no lists of allowed and denied tools, but the run denies WebFetch (codex answers START.md) [backend-lacks]
        hint: leave out `deny` and set `permission_mode`, or let another backend answer
        raymond: the workflow has a mistake",
    );
    let warning = "wf: warning: codex has no lists of allowed and denied tools: it ignores that \
                   the run allows Edit (codex answers START.md) [backend-lacks]";
    let allowed = project.raymond("run wf --replies r.yaml --allow Edit --run-id r");
    allowed.prints("x\n").mentions(0, &[warning]);
}

#[test]
fn token_counting_backend_rejects_model_without_price() {
    let state = "---\nbackend: codex\nmodel: house-model\n---\ngo";
    let project = Project::of(&[("wf/START.md", CODEX), ("named/START.md", state)]);
    let named = "named/START.md:3:1: error: the model \"house-model\" has no price, so codex cannot be held to a budget [backend-lacks]";
    project
        .raymond("run named --budget 0.05")
        .prints("")
        .mentions(2, &[named, "[prices.\"house-model\"]"]);
    let flagged = "error: the model \"house-model\" has no price, so codex cannot be held to a budget (codex answers START.md) [backend-lacks]";
    project
        .raymond("run wf --model house-model")
        .prints("")
        .mentions(2, &[flagged, "--budget none"]);
    assert!(!project.path(".raymond").exists());
}

#[test]
fn resume_warns_about_flags_without_effect() {
    let project = Project::of(&[
        ("wf/START.md", CODEX),
        ("r.yaml", "START: { fail: task }"),
        ("good.yaml", "START: <result>x</result>"),
    ]);
    project.raymond("run wf --replies r.yaml --run-id r").mentions(1, &["START.md: failed"]);
    let message = "it ignores that the run allows Edit (codex answers START.md) [backend-lacks]";
    project.raymond("resume r --allow Edit").mentions(1, &[message]);
    // The next resume with the same flag does not repeat the warning.
    let again = project.raymond("resume r --allow Edit --replies good.yaml");
    again.prints("x\n");
    assert!(!again.stderr.contains("backend-lacks"), "{}", again.stderr);
}

#[test]
fn unknown_backend_is_rejected() {
    let project = Project::of(&[("wf/START.md", "go"), ("wf/S.sh", "echo '<result>x</result>'")]);
    project.raymond("run wf --backend gemini").says(
        2,
        "raymond: there is no backend \"gemini\" (--backend)
        hint: there are claude, codex and scripted",
    );
    // Also where no state asks for it.
    project.write("wf/START.md", CLAUDE);
    project.raymond("run wf --backend gemini").mentions(2, &["there is no backend \"gemini\""]);
    project.write("raymond.toml", "budget = 'none'\nbackend = 'codx'\n");
    project.raymond("run wf").says(
        2,
        "raymond: there is no backend \"codx\" (raymond.toml:2)
        hint: did you mean `codex`?",
    );
}

#[test]
fn unused_replies_are_rejected() {
    let project = Project::of(&[("wf/START.md", CLAUDE), ("r.yaml", "START: <result>x</result>")]);
    project.raymond("run wf --replies r.yaml --backend codex").says(
        2,
        "raymond: `--replies` would be unused: the backend is codex and no state sets `backend: scripted`
        hint: leave out --backend, or `backend` in the configuration, to play the replies",
    );
    project.raymond("run wf --backend scripted").says(
        2,
        "raymond: the scripted backend has no replies
        hint: pass them with --replies FILE",
    );
    project.write("raymond.toml", "replies = 'r.yaml'\nbackend = 'claude'");
    project.raymond("run wf").mentions(2, &["`--replies` would be unused"]);
}

#[test]
fn scripted_replies_obey_the_backends_of_states() {
    let project = Project::of(&[
        ("wf/START.md", "go"),
        ("wf/NEXT.md", CLAUDE),
        ("r.yaml", "START: <goto>NEXT</goto>\nNEXT: <result>x</result>"),
    ]);
    project.raymond("run wf --replies r.yaml --run-id r").prints("x\n");
    let project = project.with("RAYMOND_BACKEND", "codex");
    let message = ["NEXT.md is answered by claude, but the conversation belongs to codex"];
    project.raymond("run wf --replies r.yaml --reminders 0").mentions(1, &message);
    project.write("wf/START.md", "---\ndeny: [WebFetch]\n---\ngo");
    project.raymond("run wf --replies r.yaml").mentions(2, &["codex has no lists of allowed"]);
}

/// Plays the reminders and the answers of the agent up to the end of the run.
#[test]
fn backend_change_gets_a_reminder_with_alternatives() {
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
      expect: [which belongs to claude, "<reset>, <function> or <fork>"]
    - text: <function return="BACK" input="please">OTHER</function>
      expect: OTHER.md would continue this conversation
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
fn visit_limit_to_another_backend_is_a_warning() {
    let start = "---\nbackend: claude\nmax_visits: 1\nthen: LOOK\n---\ngo";
    let project = Project::of(&[
        ("wf/START.md", start),
        ("wf/LOOK.md", CODEX),
        ("r.yaml", "START: <goto>START</goto>\nLOOK: <result>x</result>"),
    ]);
    project.raymond("run wf --replies r.yaml --run-id r").prints("").mentions(
        1,
        &[
            "wf/START.md:4:1: warning: `then` leads from claude to codex, which answers LOOK.md: only a \
             fresh conversation can go there [other-backend]",
            "hint: name a state that claude answers, or reach START.md by `reset`, `function` or `fork` \
             alone",
            "START.md reached its visit limit, but its `then`, LOOK.md, is answered by codex, and the \
             conversation belongs to claude",
        ],
    );
    let why = project.raymond("why r").stdout;
    let remedy =
        "first let `then` of START.md name a state that claude answers, or raise its `max_visits`";
    assert!(why.contains(remedy), "{why}");
    assert_eq!(project.events("r", "turn_started").len(), 1, "no reminder is sent");
}

#[test]
fn backend_change_by_script_fails_with_alternatives() {
    let check = |tag: &str, message: &str| {
        let project = Project::of(&[
            ("wf/START.md", CLAUDE),
            ("wf/S.sh", &format!("echo '{tag}'")),
            ("wf/OTHER.md", CODEX),
            ("r.yaml", "START: <goto>S</goto>\nOTHER: <result>x</result>"),
        ]);
        let message = format!(
            "{message}: OTHER.md is answered by codex, but the conversation belongs to claude: enter it by \
             <reset>, <function> or <fork>, or name a state that claude answers"
        );
        let failed = project.raymond("run wf --replies r.yaml --run-id r");
        failed.mentions(1, &[&format!("S.sh: failed: {message}")]);
        project.raymond("why r").prints(&format!(
            "failed: main failed at S.sh: {message} (its output: raymond logs r --agent main --state S)
→ first fix S.sh or what it needs, then: raymond resume r --with-current
"
        ));
    };
    check("<goto>OTHER</goto>", "<goto>");
    check("<call return=\"START\">OTHER</call>", "<call>");
}

/// A run that failed in a conversation of claude.
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
fn edits_cannot_move_a_conversation_to_another_backend() {
    let project = failed();
    project.write("wf/NEXT.md", CODEX);
    let before = project.read(".raymond/runs/r/journal.jsonl");
    let refused =
        "raymond: main has a conversation of claude for NEXT.md, which codex would answer now
        hint: set the `backend` of NEXT.md to claude again, or run `raymond resume r --pinned`";
    project.raymond("resume r --with-current --replies good.yaml").says(2, refused);
    project.raymond("resume r --with-current --plan").says(2, refused);
    assert_eq!(project.read(".raymond/runs/r/journal.jsonl"), before);
    project.raymond("resume r --pinned --replies good.yaml").prints("done\n");
}

#[test]
fn first_turn_of_conversation_may_change_backend() {
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
        .mentions(0, &["START.md starts again with codex, because claude answered it before"]);
}

#[test]
fn plan_names_no_backend_that_may_have_changed() {
    let fails = |flags: &str| {
        let project = Project::of(&[
            ("wf/START.md", CODEX),
            ("wf/NEXT.md", CLAUDE),
            ("r.yaml", "START: { fail: task }"),
        ]);
        let run = project.raymond(&format!("run wf --replies r.yaml --run-id r {flags}"));
        run.mentions(1, &["START.md (codex): failed"]);
        project
    };
    let plan = |project: &Project, flags: &str, continuing: &str| {
        let output = project.raymond(&format!("resume r --plan {flags}"));
        let line = format!("r: reused 0 turns ($0.00), {continuing}, repeating 0");
        assert!(output.stdout.lines().any(|printed| printed == line), "{output:?}");
        let output = project.raymond(&format!("resume r --plan --json {flags}"));
        output.json()["backends"].as_array().unwrap().len()
    };
    let project = fails("");
    assert_eq!(plan(&project, "", "continuing 1 (codex)"), 1);
    project.write("wf/START.md", CLAUDE);
    assert_eq!(plan(&project, "--with-current", "continuing 1"), 0);
    assert_eq!(plan(&project, "--pinned", "continuing 1 (codex)"), 1);
    assert_eq!(plan(&fails("--unpinned"), "", "continuing 1"), 0);
}

#[test]
fn allow_hint_names_the_state_with_mixed_backends() {
    let replies = "START: { text: <reset>OTHER</reset>, denied: ['Bash(npm test)'] }\n";
    let other = |reply: &str| format!("{replies}OTHER: {reply}");
    let project = Project::of(&[
        ("wf/START.md", CLAUDE),
        ("wf/OTHER.md", CODEX),
        ("good.yaml", &other("{ text: <result>x</result>, denied: ['the command curl x'] }")),
        ("bad.yaml", &other("{ fail: task }")),
    ]);
    let key = "allow: [\"Bash(npm test:*)\"] in the frontmatter of START.md";
    let message =
        format!("2 tool calls (npm test, the command curl x); to allow them next time: {key}");
    project.raymond("run wf --replies good.yaml").mentions(0, &[&message]);
    let message =
        format!("1 tool call (npm test); allow it: {key}, then raymond resume bad --with-current");
    project.raymond("run wf --replies bad.yaml --run-id bad").mentions(1, &[&message]);
}

#[test]
fn strict_budget_without_a_budget_warns() {
    let replies = ("r.yaml", "START: <result>x</result>");
    let project = Project::of(&[("wf/START.md", "go"), replies]);
    let check = |flags: &str, expected: usize| {
        let output = project.raymond(&format!("run wf --replies r.yaml --strict-budget {flags}"));
        let line = "--strict-budget has no effect without a budget";
        let count = output.stderr.lines().filter(|printed| printed.contains(line)).count();
        assert_eq!(count, expected, "{flags}: {}", output.stderr);
    };
    check("--budget none", 1);
    check("", 0);
    // The state has a budget, so its turns have shares.
    project.write("wf/START.md", "---\nbudget: 1\n---\ngo");
    check("--budget none", 0);
}

#[test]
fn strict_budget_warns_about_estimated_costs() {
    let project = Project::of(&[
        ("wf/START.md", CLAUDE),
        ("wf/OTHER.md", CODEX),
        ("wf/LAST.md", CODEX),
        (
            "r.yaml",
            "START: <result>x</result>\nOTHER: <result>x</result>\nLAST: <result>x</result>",
        ),
    ]);
    let check = |command: &str, expected: &[&str]| {
        let output = project.raymond(command);
        let lines = output.stderr.lines().filter(|line| line.contains("[strict-estimates]"));
        assert_eq!(lines.collect::<Vec<_>>(), expected, "{command}");
    };
    let message = "wf: warning: a strict budget charges every turn of codex its full budget share, because \
                the costs of codex are estimates (codex answers LAST.md and 1 more) [strict-estimates]";
    check("run wf --replies r.yaml --strict-budget", &[message]);
    check("run wf --replies r.yaml", &[]);
    check("run wf --replies r.yaml --strict-budget --budget none", &[]);
    project.write("bad.yaml", "START: { fail: task }");
    check("run wf --replies bad.yaml --run-id r", &[]);
    check("resume r --plan --strict-budget", &[&format!("/project/{message}")]);
    project.write("wf/START.md", "---\nbackend: claude\nallowed_tags: [result]\n---\ngo");
    check("run wf --replies r.yaml --strict-budget", &[]);
}

#[test]
fn resume_cannot_move_conversations_to_another_backend() {
    let project = Project::of(&[
        ("wf/START.md", "go"),
        ("wf/NEXT.md", "go"),
        ("r.yaml", "START: <goto>NEXT</goto>\nNEXT: { fail: task }"),
    ]);
    project.raymond("run wf --replies r.yaml --run-id r").mentions(1, &["NEXT.md: failed"]);
    project.raymond("resume r --backend claude").says(
        2,
        "raymond: main has a conversation of scripted for NEXT.md, which claude would answer now
        hint: a conversation stays with its backend: resume without --backend",
    );
}

#[test]
fn unpinned_run_ignores_edits_to_unknown_backend() {
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
        .mentions(0, &["continuing with the earlier states", "there is no backend \"gemini\""]);
}

/// Claude asks codex, which fails after a while.
fn mixed() -> Project {
    let project = Project::of(&[
        ("wf/START.md", CLAUDE),
        ("wf/S.sh", "echo '<function return=\"START\" input=\"x\">OTHER</function>'"),
        ("wf/OTHER.md", CODEX),
        (
            "r.yaml",
            "
START: { text: <goto>S</goto>, cost: 0.10 }
OTHER:
  - - { text: no tag, cost: 0.20 }
    - { fail: task, cost: 0.20 }
",
        ),
    ]);
    project
        .raymond("run wf --replies r.yaml --run-id r")
        .mentions(1, &["OTHER.md (codex): failed"]);
    project
}

#[test]
fn cost_names_the_backend_of_each_row() {
    let project = mixed();
    project.raymond("cost r --by backend").prints(
        "r: $0.50 (rehearsal)
codex                               2 turns      $0.40   80 %
claude                               1 turn      $0.10   20 %
",
    );
    project.raymond("cost r").prints(
        "r: $0.50 (rehearsal)
OTHER.md (codex)                    2 turns      $0.40   80 %
START.md (claude)                    1 turn      $0.10   20 %
",
    );
    let object = project.raymond("cost r --by backend --json").json();
    let rows = &object["rehearsed"]["rows"];
    assert_eq!((&object["by"], &rows[0]["name"]), (&json!("backend"), &json!("codex")));
    let object = project.raymond("cost r --json").json();
    assert_eq!(object["rehearsed"]["rows"][0]["backend"], json!("codex"));
    let status = project.raymond("status r --json").json();
    assert_eq!(status["paid_turns"], object["rehearsed"]["turns"]);
}

#[test]
fn mixed_run_shows_backends_in_every_command() {
    let project = mixed();
    let failed = "main failed at OTHER.md (codex): the client reports failure";
    let why = project.raymond("why r").stdout;
    assert!(why.starts_with(&format!("failed: {failed}")), "{why}");
    let status = project.raymond("status r").stdout;
    let lines: Vec<&str> = status.lines().skip(3).collect();
    assert_eq!(lines[0], "  spent $0.50 of $10.00 (rehearsal) · 4 turns, 3 paid · 3 visits");
    assert_eq!(lines[1], "  claude: 1 turn, $0.10 · codex: 2 turns, $0.40");
    assert!(lines[2].starts_with("  main             OTHER.md #1  depth 1  codex  failed: "));
    let object = project.raymond("status r --json").json();
    assert_eq!(object["agents"][0]["backend"], json!("codex"));
    let backends = json!([
        { "backend": "claude", "turns": 1, "spent_usd": 0.1 },
        { "backend": "codex", "turns": 2, "spent_usd": 0.4 },
    ]);
    assert_eq!(object["backends"], backends);
    let output = project.raymond("show r").stdout;
    for line in ["START.md → S.sh (goto) · claude $0.10", "OTHER.md (codex): reminder 1: no tag"]
    {
        assert!(output.contains(line), "{output}");
    }
    let output = project.raymond("logs r").stdout;
    for title in
        ["START.md · turn 1 · claude · $0.10", "OTHER.md · turn 2 (a reminder) · codex · $0.20"]
    {
        assert!(output.contains(title), "{output}");
    }
    let plan = "r: reused 3 turns ($0.30), continuing 1 (codex), repeating 0
  main             OTHER.md (codex): continuing in its session\n";
    project.raymond("resume r --plan").prints(plan);
    let plan = project.raymond("resume r --plan --json").json();
    let codex =
        json!({ "backend": "codex", "finished_meanwhile": 0, "adopting": 0, "continuing": 1 });
    assert_eq!(plan["backends"], json!([codex]));
}

#[test]
fn unpinned_run_ignores_edits_with_unknown_options() {
    let project = Project::of(&[
        ("wf/START.md", CLAUDE),
        ("wf/NEXT.md", CLAUDE),
        ("r.yaml", "START: <goto>NEXT</goto>\nNEXT: { fail: task }"),
        ("good.yaml", "NEXT: { text: <result>done</result>, expect: go on }"),
    ]);
    let failed = project.raymond("run wf --replies r.yaml --run-id r --unpinned");
    failed.mentions(1, &["NEXT.md: failed"]);
    project.write("wf/NEXT.md", "---\nbackend: claude\neffort: huge\n---\nedited");
    let message =
        "continuing with the earlier states: NEXT.md:3:1: error: claude has no effort \"huge\"";
    project.raymond("resume r --replies good.yaml").prints("done\n").mentions(0, &[message]);
}
