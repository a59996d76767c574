//! Documents of steps, driven by `raymond run flow.json`.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::harness::{Project, until};

/// exec → agent → exec, with a variable.
const MINIMAL: &str = r#"{
  "name": "agent-test", "vars": { "greeting": "hello", "count": 1 },
  "steps": [
    { "id": "a", "kind": "exec", "shell": "echo {{vars.greeting}} {{vars.count}}" },
    { "id": "v", "kind": "agent", "prompt": "Return foo.", "retries": 2,
      "schema": { "type": "object", "required": ["foo"], "properties": { "foo": { "type": "string" } } } },
    { "id": "b", "kind": "exec", "run": { "kind": "cmd", "cmd": "echo", "args": ["{{results.v.json.foo}}"] } }
  ]
}"#;

const BAR: &str = "v: '{\"foo\": \"bar\"}'\n";

/// One step that fails until the file `fixed` exists.
const FRAGILE: &str = r#"{ "steps": [
  { "id": "one", "kind": "exec", "shell": "echo one >> log" },
  { "id": "test", "kind": "exec", "shell": "echo broken >&2; test -e fixed", "retries": 2 },
  { "id": "after", "kind": "exec", "shell": "echo after >> log" } ] }"#;

fn minimal() -> Project {
    Project::of(&[("flow.json", MINIMAL), ("r.yaml", BAR)])
}

#[test]
fn document_results_are_printed_as_json_object() {
    let project = minimal();
    let ran = project.raymond("run flow.json --replies r.yaml --run-id r");
    ran.says(
        0,
        "r: cap $10.00 · 4 at a time · scripted · 3 steps pinned
        main             starts at a
        main             a → v
        main             v → b
        main             ended
        completed: every step is done
        path     a → v → b
        look     raymond show r · raymond logs r
        spent $0.00 of $10.00",
    );
    let exec = |stdout: &str| json!({ "ok": true, "mode": "none", "stdout": stdout, "stderr": "", "attempts": 1 });
    let results = json!({
        "a": exec("hello 1\n"),
        "v": { "ok": true, "json": { "foo": "bar" } },
        "b": exec("bar\n"),
    });
    assert_eq!(ran.json(), results);
    // Later commands print the same results.
    assert_eq!(project.raymond("wait r").json(), results);
    assert_eq!(project.raymond("status r --json").json()["results"], results);
    let shown = project.raymond("show r");
    assert_eq!(
        shown.stdout,
        "main             starts at a\nmain             a → v\nmain             v → b\nmain             ended\n·                completed\n"
    );
    project.raymond("why r").prints("completed: every step is done\n→ raymond show r\n");
}

#[test]
fn agent_flag_chooses_the_backend() {
    let project = minimal();
    project.raymond("run flow.json --agent scripted --replies r.yaml --quiet").says(0, "");
    project.raymond("run flow.json --agent scripted").says(
        2,
        "raymond: v is an agent step but the scripted backend has no replies
        hint: pass them with --replies FILE",
    );
    project.raymond("run flow.json --agent claude").mentions(7, &["could not use claude for v: "]);
    project.raymond("run flow.json").mentions(7, &["could not use claude for v: "]);
    project.raymond("run flow.json --agent nobody").says(
        2,
        "raymond: there is no backend \"nobody\" (--backend)
        hint: there are claude, codex and scripted",
    );
    // Without an agent step, no client is needed.
    project
        .write("exec.json", r#"{ "steps": [ { "id": "a", "kind": "exec", "shell": "true" } ] }"#);
    project.raymond("run exec.json --quiet").says(0, "");
    project.raymond("run exec.json --quiet --agent scripted").says(0, "");
}

#[test]
fn var_flags_override_variables_of_the_document() {
    let project = Project::of(&[(
        "flow.json",
        r#"{ "vars": { "x": "own", "kept": true }, "steps": [
          { "id": "a", "kind": "exec", "run": { "kind": "cmd", "cmd": "echo", "args": ["{{vars.x}}", "{{vars.kept}}"] } } ] }"#,
    )]);
    let check = |flags: &str, printed: &str| {
        let ran = project.raymond(&format!("run flow.json --quiet {flags}"));
        assert_eq!(ran.json()["a"]["stdout"], printed, "{flags}: {ran:?}");
    };
    check("", "own true\n");
    check("--var x=3", "3 true\n");
    check("--var x:=[3,4] --var kept=", "[3,4] \n");
    check("--var x:=null", " true\n");
    let wrong = |flags: &str, says: &str| {
        project.raymond(&format!("run flow.json {flags}")).says(2, says);
    };
    wrong(
        "--var x:=nope",
        "raymond: --var x:=: line 1, column 1: `nope` is not JSON
        hint: omit the colon for a text: --var x=TEXT",
    );
    wrong("--var x", "raymond: --var \"x\" is not of the form NAME=TEXT or NAME:=JSON");
    wrong("--var x=1 --var x:=2", "raymond: --var x is given twice");
    wrong(
        "--var kept=false",
        "flow.json: error: `kept` is true or false in the document, but the --var is a text [wrong-type]
        hint: --var kept:=false
        raymond: the workflow has a mistake",
    );
}

#[test]
fn flags_of_the_other_language_are_rejected() {
    let project = minimal();
    project.write("wf/START.sh", "echo '<result>x</result>'");
    project.raymond("run flow.json --input x").says(
        2,
        "raymond: a document of steps has no --input
        hint: pass values with --var NAME=TEXT or --var NAME:=JSON",
    );
    project.raymond("run flow.json --unpinned").says(
        2,
        "raymond: a document of steps is always pinned, with its schemas
        hint: remove --unpinned",
    );
    for flag in ["--workspace .", "--schema-path ."] {
        project.raymond(&format!("run wf {flag}")).says(
            2,
            "raymond: --workspace and --schema-path are for documents of steps (.json)
            hint: leave them out: states work in the directory where the run started",
        );
    }
}

#[test]
fn all_mistakes_have_position_and_pointer() {
    let project = Project::of(&[(
        "bad.json",
        "{\n  \"steps\": [\n    { \"id\": \"a\", \"kind\": \"exce\" },\n    { \"id\": \"a\", \"kind\": \"exec\", \"shell\": \"true\", \"retries\": 9 }\n  ]\n}\n",
    )]);
    project.raymond("run bad.json").says(
        2,
        "bad.json:3:26: error: /steps/0/kind: unknown kind `exce`: there are `exec`, `agent`, `if`, `forEach` and `while`; did you mean `exec`? [unknown_kind]
        bad.json:4:13: error: /steps/1/id: the id `a` is taken by the step at /steps/0 [duplicate_id]
        bad.json:4:62: error: /steps/1/retries: a whole number from 1 to 5 is expected, not 9 [out_of_range]
        raymond: the document has 3 mistakes",
    );
    project.write("broken.json", "{\n  \"steps\": [,]\n}");
    project.raymond("run broken.json").says(
        2,
        "broken.json:2:13: error: /steps/0: a JSON value is expected here, not `,` [not_json]
        raymond: the document has a mistake",
    );
    project.raymond("run brocken.json").says(
        2,
        "raymond: could not find brocken.json
        hint: did you mean broken.json?",
    );
    assert!(!project.path(".raymond").exists(), "nothing was begun");
}

#[test]
fn steps_and_schemas_use_the_workspace() {
    let project = Project::of(&[
        (
            "flow.json",
            r#"{ "steps": [ { "id": "a", "kind": "agent", "prompt": "x", "schema": { "$ref": "Name" } },
                            { "id": "where", "kind": "exec", "shell": "cat here" } ] }"#,
        ),
        ("r.yaml", "a: '\"text\"'\n"),
        ("work/here", "in the workspace"),
        ("work/schemas/Name.json", r#"{ "type": "string" }"#),
    ]);
    let run = "run flow.json --replies r.yaml --quiet";
    let ran = project.raymond(&format!("{run} --workspace work --schema-path schemas"));
    assert_eq!(ran.json()["where"]["stdout"], "in the workspace", "{ran:?}");
    project
        .raymond(&format!("{run} --workspace work"))
        .mentions(2, &["flow.json:1:", "/steps/0/schema", "Name", "[missing_schema]"]);
    let refused = |flags: &str, why: &str| {
        let hint = "hint: use a path inside the workspace, relative to it";
        project.raymond(&format!("{run} {flags}")).says(2, &format!("raymond: {why}\n{hint}"));
    };
    refused(
        "--workspace work --schema-path nope",
        "--schema-path nope: /project/work contains no such directory",
    );
    refused(
        "--workspace work --schema-path ../x",
        "--schema-path ../x: it leads out of the workspace",
    );
    project.raymond(&format!("{run} --workspace nowhere")).mentions(2, &["could not find nowhere"]);
}

#[test]
fn resume_repeats_only_the_failed_program() {
    let project = Project::of(&[("flow.json", FRAGILE)]);
    project
        .raymond("run flow.json --run-id r")
        .says(
            1,
            "r: cap $10.00 · 4 at a time · 3 steps pinned
        main             starts at one
        main             one → test
        main             test: exit status 1: broken; attempt 2 of 2 follows
        main             test: failed: exec_failed: exit status 1: broken
        failed: main failed at test
        path     one → test
        look     raymond why r · raymond show r · raymond logs r
        spent $0.00 of $10.00; to continue: raymond resume r",
        )
        .prints("");
    project.raymond("why r").prints(
        "failed: main failed at test: exec_failed: exit status 1: broken (its output: raymond logs r --state test)\n→ raymond resume r\n",
    );
    let logs = project.raymond("logs r --state test");
    assert_eq!(logs.stdout.matches("broken").count(), 4, "{logs:?}");
    let status = project.raymond("status r --json").json();
    assert_eq!(status["results"]["one"]["ok"], json!(true));
    assert_eq!(status["results"]["test"]["ok"], json!(false), "what a failed step left is kept");
    project.raymond("resume r --plan").prints(
        "r: reused 1 turn ($0.00), continuing 0, repeating 1\n  main             test: repeating\n",
    );
    // A failed run asks whether to use the edit.
    let keeps = "raymond: continuing with the original document: /project/flow.json";
    project.write("flow.json", FRAGILE.replace("broken", "it is broken"));
    project.raymond("resume r").says(
        2,
        "raymond: /project/flow.json has changed since
        hint: use the edit with `raymond resume r --with-current`, or the pinned document with \
         `raymond resume r --pinned`",
    );
    assert_eq!(
        project.raymond("why r --json").json()["next_command"],
        "raymond resume r --with-current"
    );
    project.raymond("resume r --pinned").mentions(1, &[&format!("{keeps} has changed since\n")]);
    project.write("flow.json", "{");
    project.write("fixed", "");
    assert_eq!(project.raymond("why r --json").json()["next_command"], "raymond resume r --pinned");
    let resumed = project.raymond("resume r --pinned");
    assert!(resumed.stderr.contains(&format!("{keeps} is not valid any more\n")));
    resumed.mentions(
        0,
        &["main             test: continues after its failure", "main             test → after"],
    );
    assert_eq!(project.read("log"), "one\nafter\n", "no step is repeated");
}

#[test]
fn resume_asks_a_failed_agent_step_again() {
    let wrong = "'{\"bar\": 1}'";
    let project =
        Project::of(&[("flow.json", MINIMAL), ("r.yaml", &format!("v: [[{wrong}, {wrong}]]\n"))]);
    project.raymond("run flow.json --replies r.yaml --run-id r").says(
        1,
        "r: cap $10.00 · 4 at a time · scripted · 3 steps pinned
        main             starts at a
        main             a → v
        main             v: not valid: \"foo\" is a required property; attempt 2 follows
        main             v: failed: agent_output_schema_failed: no output of 2 was valid: \"foo\" is a required property
        failed: main failed at v
        path     a → v
        look     raymond why r · raymond show r · raymond logs r
        spent $0.00 of $10.00; to continue: raymond resume r",
    );
    let why = "main failed at v: agent_output_schema_failed: no output of 2 was valid: \"foo\" is a required property (its output: raymond logs r --state v)";
    project.raymond("why r").prints(&format!("failed: {why}\n→ raymond resume r\n"));
    project.raymond("resume r --plan").prints(
        "r: reused 3 turns ($0.00), continuing 0, repeating 1\n  main             v: repeating\n",
    );
    project.write("r.yaml", format!("v: [[{wrong}, {wrong}, {wrong}, '{{\"foo\": \"late\"}}']]\n"));
    let resumed = project.raymond("resume r");
    resumed.mentions(
        0,
        &[
            "v: continues after its failure",
            "v: not valid: \"foo\" is a required property; attempt 3 follows",
            "v: not valid: \"foo\" is a required property; attempt 4 follows",
            "v → b",
        ],
    );
    assert_eq!(resumed.json()["b"]["stdout"], "late\n");
    assert_eq!(project.events("r", "turn_settled").len(), 6, "a and b once, v four times");
    project.raymond("replay r").mentions(0, &[]);
}

/// One step that asks with a wrong prompt, between two programs.
const PROMPT: &str = r#"{ "vars": { "tone": "kind" }, "steps": [
  { "id": "one", "kind": "exec", "shell": "echo one >> log" },
  { "id": "ask", "kind": "agent", "prompt": "Say a numbr.", "schema": { "type": "integer" }, "retries": 1 },
  { "id": "last", "kind": "exec", "run": { "kind": "cmd", "cmd": "echo", "args": ["{{vars.tone}}"] } } ] }"#;

#[test]
fn edited_document_continues_with_all_results() {
    let project = Project::of(&[("flow.json", PROMPT), ("r.yaml", "ask: ['\"no\"', '7']\n")]);
    project.raymond("run flow.json --replies r.yaml --run-id r --quiet").mentions(1, &[]);
    // A finished step cannot change.
    project.write("flow.json", PROMPT.replace("echo one", "echo two"));
    project.raymond("resume r --with-current").says(
        2,
        "raymond: r cannot use /project/flow.json: one is finished, but `shell` has changed
        hint: undo these changes, or give a changed step another id, so that it runs as a new step; to use the original document: raymond resume r --pinned",
    );
    // One step is edited, one is added before it, and one is removed.
    let edited = PROMPT.replace("numbr", "number").replace("\"last\"", "\"end\"").replace(
        "{ \"id\": \"ask\"",
        "{ \"id\": \"added\", \"kind\": \"exec\", \"shell\": \"echo added >> log\" }, { \"id\": \"ask\"",
    );
    project.write("flow.json", &edited);
    let resumed = project.raymond("resume r --with-current --var tone=firm");
    resumed.mentions(
        0,
        &[
            "raymond: using the current document: ask (changed), added (added), end (added), last (removed), variables\n",
        ],
    );
    let results = resumed.json();
    assert_eq!((&results["ask"]["json"], &results["end"]["stdout"]), (&json!(7), &json!("firm\n")));
    assert_eq!(project.read("log"), "one\nadded\n", "no finished step is repeated");
    project.raymond("replay r").mentions(0, &[]);
    let adopted = project.events("r", "definition_adopted");
    assert_eq!(adopted.len(), 1);
    assert_eq!(project.raymond("wait r").json()["ask"]["json"], json!(7));
}

#[test]
fn edited_document_reports_only_what_it_runs() {
    let document = |last: &str| {
        format!(
            r#"{{ "steps": [ {{ "id": "each", "kind": "forEach", "listPath": "$.vars.items",
              "itemVar": "i", "parallel": true, "onError": "collect", "body": [
              {{ "id": "try", "kind": "exec", "shell": "test {{{{locals.i}}}} != 2" }} ] }},
              {{ "id": "last", "kind": "exec", "shell": "{last}" }} ],
              "vars": {{ "items": [1, 2, 3] }} }}"#
        )
    };
    let project = Project::of(&[("flow.json", &document("exit 1"))]);
    project.raymond("run flow.json --run-id r").mentions(1, &["failed: main failed at last"]);
    project.write("flow.json", document("echo end"));
    let resumed = project.raymond("resume r --with-current");
    resumed.mentions(0, &["every step is done; 1 failure was collected"]);
    assert!(!resumed.stderr.contains("each"), "no iteration runs again: {resumed:?}");
    let status = project.raymond("status r");
    assert!(status.stdout.contains("3 of 3 workers done"), "{status:?}");
}

#[test]
fn failure_of_the_document_needs_an_edit() {
    let project = Project::of(&[(
        "flow.json",
        r#"{ "steps": [
          { "id": "one", "kind": "exec", "shell": "echo one >> log" },
          { "id": "two", "kind": "exec", "shell": "echo {{vars.word}} >> log" } ] }"#,
    )]);
    let next = "raymond resume r --with-current --var word=VALUE";
    project
        .raymond("run flow.json --run-id r")
        .mentions(1, &["to continue: raymond resume r --with-current --var word=VALUE"]);
    let why = project.raymond("why r");
    assert!(why.stdout.ends_with(&format!("→ {next}\n")), "{why:?}");
    project.raymond("resume r").mentions(1, &[&format!("then run: {next}\n")]);
    project.raymond("resume r --with-current").says(
        2,
        "raymond: /project/flow.json has not changed since r started
        hint: the run would end in the same way again; fix the document first",
    );
    project.raymond("resume r --var word=x").says(
        2,
        "raymond: r keeps the variables of its start
        hint: with --with-current, a resume can change variables that no finished step uses",
    );
    project.raymond("resume r --with-current --var word=x --quiet").mentions(0, &[]);
    assert_eq!(project.read("log"), "one\nx\n");
}

#[test]
fn stopped_step_begins_again_with_its_edit() {
    let document = |command: &str| {
        format!(
            r#"{{ "steps": [ {{ "id": "one", "kind": "exec", "shell": "echo one >> log" }},
              {{ "id": "slow", "kind": "exec", "shell": "touch started; {command}" }} ] }}"#
        )
    };
    let project = Project::of(&[("flow.json", &document("sleep 600"))]);
    project.raymond("run flow.json -d --run-id r").prints("r\n");
    until("it has started", || project.path("started").exists());
    project.raymond("stop r").says(0, "r: stopped");
    project.write("flow.json", document("echo quick >> log"));
    project.raymond("resume r --with-current --quiet").mentions(0, &[]);
    assert_eq!(project.read("log"), "one\nquick\n");
    assert_eq!(project.processes("r"), Vec::<u32>::new());
}

#[test]
fn second_edit_keeps_what_the_first_one_changed() {
    let document = |extra: &str, prompt: &str| {
        format!(
            r#"{{ "steps": [ {extra}
            {{ "id": "A", "kind": "agent", "prompt": "{prompt}", "retries": 1,
               "schema": {{ "type": "string" }} }} ] }}"#
        )
    };
    let extra = |shell: &str| format!(r#"{{ "id": "X", "kind": "exec", "shell": "{shell}" }},"#);
    let project = Project::of(&[
        ("flow.json", &document("", "first")),
        ("r.yaml", "A: [[\"41\", { text: '\"good\"', expect: better }]]\n"),
    ]);
    project.raymond("run flow.json --replies r.yaml --run-id r").mentions(1, &["41"]);
    project.write("flow.json", document(&extra("test -e typo"), "better"));
    project.raymond("resume r --with-current").mentions(1, &["X (added)"]);
    project.write("flow.json", document(&extra("true"), "better"));
    project.raymond("resume r --with-current").mentions(0, &["X (changed)"]);
    let results = &project.raymond("status r --json").json()["results"];
    assert_eq!(results["A"]["json"], json!("good"));
}

#[test]
fn killed_turn_is_recorded_before_an_edit() {
    let document = |command: &str| {
        format!(
            r#"{{ "steps": [ {{ "id": "slow", "kind": "exec", "shell": "touch started; {command}" }} ] }}"#
        )
    };
    let project = Project::of(&[("flow.json", &document("sleep 600"))]);
    let running = project.start("run flow.json --run-id r");
    until("it has started", || project.path("started").exists());
    running.signal(Signal::KILL);
    running.wait();
    project.write("flow.json", document("true"));
    project.raymond("resume r --with-current").mentions(
        2,
        &["main has an unfinished turn, whose outcome must be recorded first
hint: run `raymond stop r`, then `raymond resume r --with-current`
"],
    );
    project.raymond("stop r").mentions(0, &["r: stopped"]);
    project.raymond("resume r --with-current").mentions(0, &["slow (changed)"]);
    assert_eq!(project.processes("r"), Vec::<u32>::new());
}

#[test]
fn output_is_the_result_of_a_document() {
    let project = Project::of(&[
        (
            "flow.json",
            r#"{ "vars": { "items": [1, 2] }, "steps": [
              { "id": "each", "kind": "forEach", "listPath": "$.vars.items", "itemVar": "i",
                "parallel": true, "onError": "collect", "body": [
                { "id": "try", "kind": "exec", "shell": "test {{locals.i}} = 1" },
                { "id": "judge", "kind": "agent", "prompt": "Judge {{locals.i}}.", "schema": true } ] },
              { "id": "show", "kind": "exec", "run": { "kind": "cmd", "cmd": "echo",
                "args": ["{{results.each.items[0].judge.json}}"] } } ],
              "output": { "verdicts": "{{results.each.items}}", "said": "{{results.show.stdout}}" } }"#,
        ),
        ("r.yaml", "judge: '\"good\"'\n"),
    ]);
    let ran = project.raymond("run flow.json --replies r.yaml --run-id r --quiet").json();
    assert_eq!(ran["said"], "good\n");
    let verdicts = ran["verdicts"].as_array().unwrap();
    assert_eq!(verdicts[0]["judge"], json!({ "ok": true, "json": "good" }));
    let tried = (&verdicts[1]["try"]["ok"], verdicts[1].get("judge"));
    assert_eq!(tried, (&json!(false), None), "a collected failure is part of its item");
    let status = project.raymond("status r --json").json();
    assert_eq!((&status["output"], &status["results"]["show"]["ok"]), (&ran, &json!(true)));
    assert_eq!(project.raymond("wait r").json(), ran);
    let plan = project.raymond("crayfish explain flow.json");
    assert!(
        plan.stdout.contains("output reads results.show.stdout, results.each.items"),
        "{plan:?}"
    );
}

#[test]
fn invalid_output_is_requested_again() {
    let replies = "v: [['{\"bar\": 1}', '{\"foo\": \"x\"}']]\n";
    let project = Project::of(&[("flow.json", MINIMAL), ("r.yaml", replies)]);
    let ran = project.raymond("run flow.json --replies r.yaml --run-id r");
    ran.mentions(0, &["v: not valid: \"foo\" is a required property; attempt 2 follows"]);
    assert_eq!(ran.json()["b"]["stdout"], "x\n");
}

/// A loop over three items in parallel; the second one fails.
const PARALLEL: &str = r#"{ "vars": { "items": [1, 2, 3] }, "steps": [
  { "id": "each", "kind": "forEach", "listPath": "$.vars.items", "itemVar": "i", "parallel": true,
    "onError": "ON_ERROR", "maxParallel": 1, "body": [
    { "id": "try", "kind": "exec", "shell": "test {{locals.i}} != 2" },
    { "id": "judge", "kind": "agent", "prompt": "Judge {{locals.i}}.", "schema": { "type": "object" } } ] } ] }"#;

#[test]
fn failures_of_a_parallel_loop_are_collected() {
    let project = Project::of(&[
        ("flow.json", &PARALLEL.replace("ON_ERROR", "collect")),
        ("r.yaml", "judge: '{}'\n\"each[2].judge\": '{\"third\": true}'\n"),
    ]);
    let ran = project.raymond("run flow.json --replies r.yaml --run-id r");
    ran.mentions(
        0,
        &[
            "main_each2       each[1].try: failed, and was collected: exit status 1",
            "every step is done; 1 failure was collected",
        ],
    );
    let results = ran.json();
    let of = |key: &str| results[key]["json"].clone();
    assert_eq!((of("each[0].judge"), of("each[2].judge")), (json!({}), json!({ "third": true })));
    assert_eq!(results["each[1].try"]["ok"], json!(false));
    assert_eq!(results["judge"], results["each[2].judge"], "the plain id is the latest");
    // The id selects a step in all iterations, the key in one.
    let logs = project.raymond("logs r --state judge");
    assert_eq!(logs.stdout.matches("· turn 1").count(), 2, "{logs:?}");
    project.raymond("logs r --state each[2].judge").mentions(0, &[]);
}

#[test]
fn failure_of_parallel_loop_names_its_iteration() {
    let project = Project::of(&[
        ("flow.json", &PARALLEL.replace("ON_ERROR", "fail")),
        ("r.yaml", "judge: '{}'\n"),
    ]);
    let ran = project.raymond("run flow.json --replies r.yaml --run-id r");
    ran.mentions(1, &["failed: main_each2 failed at each[1].try"]);
    let status = project.raymond("status r");
    assert!(status.stdout.contains("\n  main             each\n"), "{status:?}");
    assert!(
        status
            .stdout
            .contains("\n  main_each2       each[1].try  failed: exec_failed: exit status 1\n"),
        "{status:?}"
    );
}

#[test]
fn failed_loop_is_named_by_its_id() {
    let project = Project::of(&[(
        "flow.json",
        r#"{ "vars": { "n": 1 }, "steps": [ { "id": "mend", "kind": "while", "maxIters": 2,
          "until": { "op": "eq", "path": "$.vars.n", "value": 2 },
          "body": [ { "id": "try", "kind": "exec", "shell": "true" } ] } ] }"#,
    )]);
    let ran = project.raymond("run flow.json --run-id r");
    ran.mentions(
        1,
        &[
            "mend[0].try → mend[1].try",
            "mend: failed: while_not_converged: `until` does not hold after 2 iterations",
            "failed: main failed at mend",
            "to continue, first fix /project/flow.json, then: raymond resume r --with-current",
        ],
    );
    assert_eq!(project.raymond("status r --json").json()["agents"][0]["state"], "mend");
}

#[test]
fn replies_name_steps_by_id_or_key() {
    let project = Project::of(&[
        ("flow.json", &PARALLEL.replace("ON_ERROR", "collect")),
        ("typo.yaml", "jugde: '{}'\n"),
        ("r.yaml", "\"other[1].x\": '{}'\n"),
        ("keys.yaml", "\"each[0].judge\": '{}'\n\"each[2].judge\": '{}'\n"),
    ]);
    project.raymond("run flow.json --replies typo.yaml").says(
        2,
        "typo.yaml:1:1: error: no agent step is called \"jugde\" [unknown-state]
        hint: did you mean \"judge\"?
        raymond: the file of replies has a mistake",
    );
    project.raymond("run flow.json --replies r.yaml").mentions(
        0,
        &[
            "r.yaml:1:1: warning: no agent step is called \"other[1].x\" [unknown-state]",
            "r.yaml: warning: no reply for judge, if it is reached [no-reply]",
            "each[0].judge: failed, and was collected: could not start: no reply for main_each1 / attempt 1 of each[0].judge in r.yaml: add one under each[0].judge",
        ],
    );
    let ran = project.raymond("run flow.json --replies keys.yaml");
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
}

#[test]
fn resumed_step_asks_for_its_missing_output() {
    let project = minimal();
    project.write("r.yaml", "v: ['{}']\n");
    let lacks = "no reply for main / attempt 2 of v in r.yaml: add one under v";
    project.raymond("run flow.json --replies r.yaml --run-id r").mentions(1, &[lacks]);
    project.write("r.yaml", "v: ['{}', '{\"foo\": \"at last\"}']\n");
    let resumed = project.raymond("resume r");
    assert_eq!(resumed.code(), 0, "{resumed:?}");
    assert!(resumed.stdout.contains("at last"), "{resumed:?}");
}

#[test]
fn detached_document_can_be_stopped_and_resumed() {
    let project = Project::of(&[(
        "flow.json",
        r#"{ "steps": [ { "id": "slow", "kind": "exec", "shell": "touch started; until test -e go; do test -d $PWD || exit 1; sleep 0.01; done" } ] }"#,
    )]);
    project.raymond("run flow.json -d --run-id r").prints("r\n");
    until("it has started", || project.path("started").exists());
    let status = project.raymond("status r --json").json();
    assert_eq!(
        (&status["status"], &status["agents"][0]["state"]),
        (&json!("running"), &json!("slow"))
    );
    project.raymond("stop r").says(0, "r: stopped");
    assert_eq!(project.processes("r"), Vec::<u32>::new());
    project.write("go", "");
    let resumed = project.raymond("resume r --quiet");
    assert_eq!(resumed.json()["slow"]["ok"], json!(true));
    assert_eq!(project.raymond("wait r").code(), 0);
}

#[test]
fn signal_stops_the_run_and_its_step() {
    let project = Project::of(&[(
        "flow.json",
        r#"{ "steps": [ { "id": "slow", "kind": "exec", "shell": "touch started; sleep 600" } ] }"#,
    )]);
    let running = project.start("run flow.json --run-id r");
    until("it has started", || project.path("started").exists());
    running.signal(Signal::INT);
    running.wait().mentions(130, &["to continue: raymond resume r"]);
    assert_eq!(project.processes("r"), Vec::<u32>::new());
}

#[test]
fn or_resume_requires_the_same_document() {
    let project = minimal();
    let run = "run flow.json --replies r.yaml --run-id r --or-resume --quiet";
    project.raymond(&format!("{run} --var count:=2")).says(0, "");
    project.raymond(&format!("{run} --var count:=2")).says(0, "");
    project.raymond(&format!("{run} --var count=2")).says(
        2,
        "raymond: r started with a different --var
        hint: continue it unchanged with raymond resume r, or choose another --run-id",
    );
}

#[test]
fn run_is_named_after_its_document() {
    let project = Project::of(&[("Daily Digest.json", r#"{ "steps": [] }"#)]);
    let words = ["run", "Daily Digest.json", "--json"];
    let ran: Value = project.spawn(env!("CARGO_BIN_EXE_raymond"), &words).wait().json();
    assert!(ran["run_id"].as_str().unwrap().starts_with("daily-digest-"), "{ran}");
    assert_eq!((&ran["status"], &ran["results"]), (&json!("completed"), &json!({})));
}

#[test]
fn documents_are_checked_like_by_validate() {
    let document = r#"{"vars": {"word": "x"}, "steps": [
  {"id": "say", "kind": "exec", "shell": "echo {{$.vars.word}}"}]}"#;
    let project = Project::of(&[("flow.json", document)]);
    let warning = "flow.json:2:42: warning: /steps/0/shell: `{{$.vars.word}}` is text here; did \
                   you mean `{{vars.word}}`? [bad_path]\n";
    let validated = project.raymond("crayfish validate flow.json");
    validated.mentions(0, &[warning]);
    project.raymond("run flow.json").mentions(0, &[warning]);
    let output = project.raymond("run flow.json --var wrod=y");
    output.mentions(
        2,
        &[
            warning,
            "flow.json: error: the document has no variable `wrod` [unused-variable]\n  hint: did \
             you mean `word`?\nraymond: the workflow has a mistake\n",
        ],
    );
}

#[test]
fn both_outputs_keep_their_final_newline() {
    let step =
        r#"{ "steps": [ { "id": "a", "kind": "exec", "shell": "echo out; echo err >&2" } ] }"#;
    let project = Project::of(&[("flow.json", step)]);
    let ran = project.raymond("run flow.json --quiet").json();
    assert_eq!((&ran["a"]["stdout"], &ran["a"]["stderr"]), (&json!("out\n"), &json!("err\n")));
}

#[test]
fn exec_steps_get_the_id_of_the_run() {
    let document = |env: &str| {
        let shell = "echo $RAYMOND_RUN_ID $RAYMOND_WORKFLOW_ID";
        format!(r#"{{ "steps": [ {{ "id": "a", "kind": "exec", "shell": "{shell}"{env} }} ] }}"#)
    };
    let files = [
        ("flow.json", document("")),
        ("own.json", document(r#", "env": { "RAYMOND_RUN_ID": "mine" }"#)),
    ];
    // The variable of an outer run must not reach a step.
    let project = Project::of(&files.each_ref().map(|(name, text)| (*name, text.as_str())))
        .with("RAYMOND_RUN_ID", "outer");
    let printed = |words: &str| project.raymond(words).json()["a"]["stdout"].take();
    assert_eq!(printed("run flow.json --run-id r -q"), "r r\n");
    assert_eq!(printed("run own.json --run-id s -q"), "mine s\n");
    let call = json!({ "workflow": serde_json::from_str::<Value>(&files[0].1).unwrap() });
    let reply = project.sends(call.to_string(), "crayfish -q").json();
    assert_eq!(reply["results"]["a"]["stdout"], "call call\n");
}

#[test]
fn status_shows_the_description_of_a_step() {
    let flow = r#"{ "steps": [
      { "id": "wait", "kind": "exec", "description": "asks the server", "shell": "exit 1" } ] }"#;
    let project = Project::of(&[("flow.json", flow)]);
    project.raymond("run flow.json --run-id r").mentions(1, &[]);
    let seen = project.raymond("status r").stdout;
    assert!(seen.contains("  (asks the server)\n"), "{seen}");
}

#[test]
fn agent_step_has_its_own_budget() {
    let document = |budget: &str| {
        format!(
            r#"{{ "description": "asks once", "steps": [
  {{ "id": "v", "kind": "agent", "description": "a number", "prompt": "Count.",
    "schema": {{ "type": "integer" }}, "retries": 3, "model": "small", "allow": ["Bash(wc:*)"]{budget} }} ] }}"#
        )
    };
    let replies = "v: [[{ text: no, cost: 0.30 }, { text: '7', cost: 0.30 }]]\n";
    let capped = document(", \"budget\": 0.30");
    let project =
        Project::of(&[("free.json", &document("")), ("capped.json", &capped), ("r.yaml", replies)]);
    let free = project.raymond("run free.json --replies r.yaml --quiet");
    assert_eq!(free.json(), json!({ "v": { "ok": true, "json": 7 } }));
    let capped = project.raymond("run capped.json --replies r.yaml --run-id r");
    capped.mentions(1, &["budget"]);
    assert_eq!(project.events("r", "turn_settled").len(), 1, "no attempt starts without money");
    let mistake = document(", \"budget\": 0");
    project.write("zero.json", mistake);
    let message = "an amount of dollars such as 2.50 is expected, not 0";
    project.raymond("run zero.json --replies r.yaml").mentions(2, &[message]);
}

#[test]
fn logs_show_the_requests_of_agent_steps() {
    // The second step asks with the result of the first one, which is over the limit for records.
    let flow = r#"{ "steps": [
      { "id": "read", "kind": "exec", "shell": "head -c 20000 /dev/zero | tr '\\0' x" },
      { "id": "ask", "kind": "agent", "prompt": "Return foo.", "retries": 2,
        "input": { "text": "{{results.read.stdout}}" },
        "schema": { "type": "object", "required": ["foo"] } } ] }"#;
    let replies = "ask: ['{}', '{\"foo\": 1}']\n";
    let project = Project::of(&[("flow.json", flow), ("r.yaml", replies)]);
    assert_eq!(project.raymond("run flow.json --replies r.yaml --run-id r").code(), 0);
    let turns = project.raymond("logs r --prompts --json").json()["turns"].take();
    let [_, first, second] = &turns.as_array().unwrap()[..] else { panic!("{turns}") };
    for turn in [first, second] {
        assert_eq!(turn["said"][0]["kind"], "prompt", "{turn}");
        let prompt = turn["said"][0]["text"].as_str().unwrap();
        assert!(prompt.contains("Return foo.") && prompt.contains(&"x".repeat(20_000)), "{prompt}");
    }
    let again = second["said"][0]["text"].as_str().unwrap();
    assert!(again.contains("is a required property"), "{again}");
}
