//! `raymond crayfish`: one request and one reply, and the commands for documents.

use std::io::Write as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::harness::{Project, until};

const FLOW: &str = r#"{
  "name": "digest", "version": 2, "vars": { "mode": "daily" },
  "steps": [
    { "id": "fetch", "kind": "exec", "shell": "./fetch {{vars.mode}}\necho done", "retries": 2, "timeoutMs": 30000,
      "io": { "mode": "stream" } },
    { "id": "gate", "kind": "if", "cond": { "op": "exists", "path": "$.results.fetch" },
      "then": [ { "id": "judge", "kind": "agent", "prompt": "Judge it.", "description": "rates it",
                  "input": { "what": "{{results.fetch.json}}" }, "schema": { "$ref": "Verdict" } } ] }
  ]
}
"#;

#[test]
fn valid_documents_are_listed_on_stdout() {
    let project = Project::of(&[("flow.json", FLOW), ("schemas/Verdict.json", "{}")]);
    let check = project.raymond("crayfish validate flow.json --schema-path schemas");
    check.says(0, "").prints("flow.json: valid, 3 steps\n");
    let json = project.raymond("crayfish validate flow.json --schema-path schemas --json").json();
    let file = json!({ "file": "flow.json", "ok": true, "steps": 3, "warnings": [] });
    assert_eq!(json, json!({ "version": 1, "ok": true, "files": [file] }));
    // Schemas are looked for in the workspace.
    project.raymond("crayfish validate flow.json --workspace schemas --schema-path .").says(0, "");
    project
        .sends(r#"{ "steps": [] }"#, "crayfish validate -")
        .says(0, "")
        .prints("<stdin>: valid, 0 steps\n");
}

#[test]
fn suspicious_expression_is_a_warning() {
    let text = r#"{ "steps": [{ "id": "a", "kind": "exec", "shell": "cd {{$.vars.dir}}" }] }"#;
    let project = Project::of(&[("flow.json", text)]);
    let warning = "flow.json:1:51: warning: /steps/0/shell: `{{$.vars.dir}}` is text here; \
                   did you mean `{{vars.dir}}`? [bad_path]";
    let check = project.raymond("crayfish validate flow.json");
    check.says(0, warning).prints("flow.json: valid, 1 step\n");
    project.raymond("crayfish explain flow.json").says(0, warning);
    let json = project.raymond("crayfish validate flow.json --json").json();
    let message = "`{{$.vars.dir}}` is text here; did you mean `{{vars.dir}}`?";
    let warning = json!({
        "path": "/steps/0/shell", "code": "bad_path", "message": message, "line": 1, "column": 51,
    });
    assert_eq!(json["files"][0]["warnings"], json!([warning]));
}

#[test]
fn unknown_backend_is_not_a_document_mistake() {
    let text = r#"{ "steps": [{ "id": "a", "kind": "agent", "prompt": "p", "schema": {} }] }"#;
    let project = Project::of(&[("flow.json", text), ("r.yaml", "a: '1'")]);
    project.raymond("run flow.json --agent claud").says(
        2,
        "raymond: there is no backend \"claud\" (--backend)
        hint: did you mean `claude`?",
    );
    project.raymond("run flow.json --replies r.yaml --backend claude").says(
        2,
        "raymond: `--replies` would be unused: the backend is claude
        hint: leave out --backend, or `backend` in the configuration, to play the replies",
    );
}

#[test]
fn mistakes_have_file_line_and_pointer() {
    let project = Project::of(&[
        ("flow.json", FLOW),
        (
            "bad.json",
            "{\n \"steps\": [\n  { \"id\": \"a\", \"kind\": \"exec\" },\n  7\n ],\n \"x\": 1\n}",
        ),
        ("broken.json", "{\n"),
        ("good.json", r#"{ "steps": [] }"#),
    ]);
    let check =
        project.raymond("crayfish validate flow.json bad.json broken.json good.json nope.json");
    check.says(
        2,
        "flow.json:8:86: error: /steps/1/then/0/schema/$ref: there is no schema named `Verdict` (no schema directory is set: use --schema-path DIR or `ref.schemaPaths`) [missing_schema]
        raymond: the document has a mistake
        bad.json:3:3: error: /steps/0: an exec step needs `shell` or `run` [missing_key]
        bad.json:4:3: error: /steps/1: a step is an object, not a number [wrong_type]
        bad.json:6:7: error: /x: a workflow has no key `x` [unknown_key]
        raymond: the document has 3 mistakes
        broken.json:2:1: error: the text ends where a key in double quotes is expected [not_json]
        raymond: the document has a mistake
        raymond: could not find nope.json
        hint: did you mean good.json?
        raymond: found problems in 4 of 5 documents",
    );
    check.prints("good.json: valid, 0 steps\n");
}

#[test]
fn mistakes_are_in_text_order_once() {
    let project = Project::of(&[(
        "bad.json",
        r#"{ "steps": [
  { "prompt": "{{locals.x}} {{locals.y}} {{locals.x}}", "schema": 5, "id": "a", "kind": "agent" },
  { "schema": { "type": "strin" }, "id": "b", "kind": "agent", "prompt": "{{results.c.json}}" },
  { "id": "d", "kind": "exec", "shell": "x", "env": { "A": "{{results.d.json}}" } }
] }"#,
    )]);
    let strin = r#""strin" is not valid under any of the schemas listed in the 'anyOf' keyword; nearest: the value is not one of "array", "boolean", "integer", "null", "number", "object" or "string""#;
    let text = format!(
        "bad.json:2:15: error: /steps/0/prompt: no forEach around this step binds `x` [unknown_local]
        bad.json:2:15: error: /steps/0/prompt: no forEach around this step binds `y` [unknown_local]
        bad.json:2:67: error: /steps/0/schema: a JSON Schema (an object or a boolean) is expected, not a number [wrong_type]
        bad.json:3:25: error: /steps/1/schema/type: {strin} [invalid_schema]
        bad.json:3:74: error: /steps/1/prompt: there is no step `c` [unknown_step]
        bad.json:4:60: error: /steps/2/env/A: the step `d` leaves no `json`: its mode is `none`, it leaves `ok`, `mode`, `stdout`, `stderr`, `attempts` [unknown_result]
        raymond: the document has 6 mistakes"
    );
    project.raymond("crayfish validate bad.json").says(2, &text);
}

#[test]
fn folder_suggests_the_document_in_it() {
    let project = Project::of(&[("d/flow.json", FLOW), ("d/README.md", ""), ("e/x.txt", "")]);
    for command in ["validate", "explain"] {
        project.raymond(&format!("crayfish {command} d")).says(
            2,
            "raymond: d is a directory, not a document of steps
            hint: did you mean d/flow.json?",
        );
    }
    project.raymond("crayfish validate e").says(
        2,
        "raymond: e is a directory, not a document of steps
        hint: a document of steps is a .json file",
    );
    project.raymond("run d").says(
        2,
        "d: error: there is no entry state 1_START or START: there are no states at all [no-entry]
          hint: add START.md, or name the state to start with (not in an archive)
        raymond: the workflow has a mistake
        hint: it contains a document of steps: run it with `raymond run d/flow.json`",
    );
}

#[test]
fn mistyped_document_command_gets_a_suggestion() {
    let project = Project::of(&[]);
    project.raymond("crayfish valdate flow.json").says(
        2,
        "raymond: unknown command `raymond crayfish valdate`
        hint: did you mean `raymond crayfish validate`?",
    );
    project.raymond("crayfish xyzzy").says(
        2,
        "raymond: unknown command `raymond crayfish xyzzy`
        hint: see `raymond crayfish --help`",
    );
}

#[test]
fn mistakes_as_json() {
    let project = Project::of(&[("bad.json", "{\n  \"steps\": 7\n}")]);
    let check = project.raymond("crayfish validate bad.json nope.json --json");
    check.says(2, "");
    let expected = json!({ "version": 1, "ok": false, "files": [
        { "file": "bad.json", "ok": false, "errors": [
            { "path": "/steps", "code": "wrong_type", "message": "an array is expected, not a number", "line": 2, "column": 12 } ] },
        { "file": "nope.json", "ok": false, "errors": [
            { "path": "", "code": "unreadable", "message": "could not find nope.json" } ] },
    ] });
    assert_eq!(check.json(), expected);
}

#[test]
fn schemas_are_printed_unchanged() {
    let project = Project::of(&[]);
    for (what, title) in
        [("", "document"), ("document", "document"), ("request", "request"), ("reply", "reply")]
    {
        let printed = project.raymond(&format!("crayfish schema {what}"));
        let schema = printed.json();
        assert!(schema["$schema"].is_string(), "{title}: {schema}");
    }
    project
        .raymond("crayfish schema nothing")
        .mentions(2, &["[possible values: document, request, reply]"]);
}

#[test]
fn document_is_explained_as_a_tree() {
    let project = Project::of(&[("flow.json", FLOW)]);
    project.raymond("crayfish explain flow.json").says(0, "").prints(
        "digest, version 2: 3 steps
vars mode
├ fetch  exec  ./fetch {{vars.mode}} …
│   reads vars.mode · stdout: any JSON · 2 attempts of at most 30s each
└ gate  if  $.results.fetch exists
  └ judge  agent  Judge it.
      rates it
      reads results.fetch.json · answers Verdict · 3 attempts
",
    );
    let steps = project.raymond("crayfish explain flow.json --json").json()["steps"].clone();
    let judge = json!({
        "id": "judge", "kind": "agent", "path": "/steps/1/then/0", "inside": "gate", "does": "Judge it.",
        "description": "rates it",
        "facts": ["reads results.fetch.json", "answers Verdict", "3 attempts"],
    });
    assert_eq!(steps[2], judge);
    // A given schema path must contain the schemas.
    project.write("schemas/Verdict.json", "{}");
    project.raymond("crayfish explain flow.json --schema-path schemas").says(0, "");
    project
        .raymond("crayfish explain flow.json --workspace .")
        .mentions(2, &["/steps/1/then/0/schema/$ref: there is no schema named `Verdict`"]);
    project
        .raymond("crayfish explain flow.json --schema-path nowhere")
        .mentions(2, &["--schema-path nowhere: /project contains no such directory"]);
    project.write("bad.json", "{}");
    project
        .raymond("crayfish explain bad.json")
        .mentions(2, &["bad.json:1:1: error: ", "[missing_key]"]);
}

#[test]
fn unreadable_request_is_bad_request_and_exit_2() {
    let project = Project::of(&[]);
    let check = |text: &[u8], message: &str| {
        let answered = project.sends(text, "crayfish");
        assert_eq!(answered.stdout.matches('\n').count(), 1, "one line: {answered:?}");
        let reply = answered.says(2, "").json();
        assert_eq!((&reply["ok"], &reply["error"]), (&json!(false), &json!("bad_request")));
        assert!(reply["message"].as_str().unwrap().contains(message), "{reply}");
        assert_eq!((&reply["results"], &reply["attempts"]), (&json!({}), &json!({})));
    };
    check(b"", "the text ends where a JSON value is expected");
    check(b"{\"action\": \"run\",}", "line 1, column 18");
    check(b"{} {}", "there is more text after the JSON value");
    check(b"{\"a\": 1, \"a\": 2}", "the key `a` appears twice");
    check(b"\"\xff\"", "this is not UTF-8");
    check(&[b'['; 5_000], "arrays and objects are nested deeper");
}

/// A request whose one step is `shell`.
fn request(shell: &str) -> String {
    let step = json!({ "id": "a", "kind": "exec", "shell": shell });
    json!({ "action": "run", "workflow": { "steps": [step] } }).to_string()
}

#[test]
fn too_large_request_is_rejected_early() {
    let project = Project::of(&[]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (mut replied, stdout) = std::io::pipe().unwrap();
    let running = project.start_between(reader, stdout, "crayfish");
    let sent = std::thread::spawn(move || {
        let chunk = vec![b' '; 1 << 20];
        (0..80).take_while(|_| writer.write_all(&chunk).is_ok()).count()
    });
    let mut reply = String::new();
    std::io::Read::read_to_string(&mut replied, &mut reply).unwrap();
    assert!(sent.join().unwrap() < 80, "it stops reading early");
    assert_eq!(running.wait().code(), 2);
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(reply["error"], "bad_request");
    assert!(reply["message"].as_str().unwrap().contains("larger than 64 MiB"), "{reply}");
}

#[test]
fn signal_while_reading_the_request_is_answered() {
    let project = Project::of(&[]);
    let (reader, writer) = std::io::pipe().unwrap();
    let (mut replied, stdout) = std::io::pipe().unwrap();
    let running = project.start_between(reader, stdout, "crayfish");
    // It handles signals once it has read the first byte.
    { &writer }.write_all(b"{").unwrap();
    until("it reads", || rustix::io::ioctl_fionread(&writer).is_ok_and(|left| left == 0));
    running.signal(Signal::TERM);
    let mut reply = String::new();
    std::io::Read::read_to_string(&mut replied, &mut reply).unwrap();
    assert_eq!(running.wait().code(), 0);
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(reply["error"], "cancelled");
    drop(writer);
}

#[test]
fn unreadable_configuration_is_reported_in_the_reply() {
    let project = Project::of(&[("raymond.toml", "[agents]\nmusk = 1\n")]);
    let reply = project.sends(request("true"), "crayfish").says(0, "").json();
    assert_eq!(reply["error"], "bad_workspace");
    let expected = "raymond.toml:2:8: error: agents.\"musk\" is not a table";
    assert!(reply["message"].as_str().unwrap().contains(expected), "{reply}");
}

/// exec → agent → exec.
fn flow() -> Value {
    json!({ "steps": [
        { "id": "a", "kind": "exec", "shell": "echo pre >> log" },
        { "id": "v", "kind": "agent", "prompt": "Return foo.", "retries": 2,
          "schema": { "type": "object", "required": ["foo"] } },
        { "id": "b", "kind": "exec", "shell": "echo post >> log" },
    ] })
}

#[test]
fn reply_is_one_line_and_progress_on_stderr() {
    let project = Project::of(&[]);
    let call = |more: Value| {
        let mut request = json!({ "action": "run", "workflow": flow(), "runId": "r" });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answered = project.sends(request.to_string(), "crayfish");
        assert_eq!(answered.stdout.matches('\n').count(), 1, "{answered:?}");
        assert_eq!(answered.code(), 0);
        (answered.json(), answered.stderr)
    };
    let (asked, talk) = call(json!({}));
    assert_eq!(talk, "a begins\na is done\nv begins\n");
    assert_eq!(asked["status"], "needs_agent");
    assert_eq!(asked["requests"][0]["requestId"], "r:v:1");
    let (again, _) = call(json!({ "agentOutputs": { "v": { "bar": 1 } } }));
    assert_eq!(again["requests"][0]["attempt"], 2);
    let (done, talk) = call(json!({ "agentOutputs": { "r:v:2": { "foo": 1 } } }));
    assert_eq!((&done["ok"], &done["status"]), (&json!(true), &json!("done")));
    assert_eq!(talk, "v is done\nb begins\nb is done\n");
    assert_eq!(project.read("log"), "pre\npost\n", "no step is repeated");
    let logs = project.raymond("logs r --state v --json").says(0, "").json();
    let turns: Vec<Value> = logs["turns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| json!([turn["attempt"], turn["ended"], turn["failure"], turn["said"]]))
        .collect();
    let said = |text: &str| json!([{ "kind": "text", "text": text }]);
    let failure = r#""foo" is a required property"#;
    let expected = [
        json!([1, "not_valid", failure, said(r#"{"bar":1}"#)]),
        json!([2, "answered", null, said(r#"{"foo":1}"#)]),
    ];
    assert_eq!(turns, expected);
}

#[test]
fn quiet_prints_no_progress() {
    let project = Project::of(&[]);
    project.sends(request("true"), "crayfish --quiet").says(0, "");
    project.sends(request("true"), "crayfish").says(0, "a begins\na is done");
}

#[test]
fn failure_is_a_reply_with_exit_0() {
    let project = Project::of(&[]);
    let reply = project.sends(request("echo oops >&2; exit 3"), "crayfish -q").says(0, "").json();
    assert_eq!(
        (&reply["ok"], &reply["error"], &reply["stepId"]),
        (&json!(false), &json!("exec_failed"), &json!("a"))
    );
    assert_eq!(reply["results"]["a"]["stderr"], "oops\n");
    let unknown = json!({ "action": "run", "workflow": {}, "x": 1 });
    let reply = project.sends(unknown.to_string(), "crayfish -q").says(2, "").json();
    assert_eq!(
        (&reply["error"], &reply["errors"][0]["path"]),
        (&json!("bad_request"), &json!("/x"))
    );
    let invalid = json!({ "action": "run", "workflow": {} });
    let reply = project.sends(invalid.to_string(), "crayfish -q").says(0, "").json();
    assert_eq!(reply["error"], "invalid_workflow");
}

#[test]
fn workspace_comes_from_flag_then_agent_then_directory() {
    let project = Project::of(&[("here", ""), ("given/given", ""), ("theirs/musk", "")]);
    let ask = |agent: Option<&str>, flags: &str| {
        let mut call: Value = serde_json::from_str(&request("ls | sort | head -1")).unwrap();
        if let Some(agent) = agent {
            call["agentId"] = json!(agent);
        }
        let reply =
            project.sends(call.to_string(), &format!("crayfish -q {flags}")).says(0, "").json();
        let failed = reply["error"].as_str().map(str::to_owned);
        failed.unwrap_or_else(|| reply["results"]["a"]["stdout"].as_str().unwrap().to_owned())
    };
    assert_eq!(ask(None, ""), "given\n", "the first of what is here");
    assert_eq!(ask(Some("anybody"), ""), "given\n", "no agent is configured");
    assert_eq!(ask(None, "--workspace given"), "given\n");
    project.write("raymond.toml", "[agents.musk]\nworkspace = \"theirs\"\n");
    assert_eq!(ask(Some("musk"), ""), "musk\n");
    assert_eq!(ask(Some("anybody"), ""), "unknown_agent");
    assert_eq!(ask(None, ""), "unknown_agent");
    assert_eq!(ask(Some("anybody"), "--workspace given"), "given\n", "what is given wins");
    assert_eq!(ask(None, "--workspace nowhere"), "bad_workspace");
    let config = project.raymond("config").stdout;
    let words: Vec<&str> = config.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(words, ["agents.musk", "/project/theirs", "raymond.toml:1"]);
}

/// A step that writes its process id, and never ends.
fn endless() -> String {
    request("echo $$ > pid; touch started; sleep 600")
}

/// Whether the step has ended.
fn has_ended(project: &Project) -> bool {
    let pid = project.read("pid");
    !std::path::Path::new("/proc").join(pid.trim()).join("cmdline").exists()
}

#[test]
fn signal_ends_the_step_and_gets_a_reply() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let project = Project::of(&[]);
        let running = project.start_sending(endless(), "crayfish");
        until("it has started", || project.path("started").exists());
        running.signal(signal);
        let reply = running.wait();
        assert_eq!((reply.code(), &reply.json()["error"]), (0, &json!("cancelled")), "{reply:?}");
        assert!(has_ended(&project));
    }
}

#[test]
fn closed_stdout_ends_the_step() {
    let project = Project::of(&[("request.json", &endless())]);
    let stdin = std::fs::File::open(project.path("request.json")).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let running = project.start_between(stdin, writer, "crayfish");
    until("it has started", || project.path("started").exists());
    drop(reader);
    assert_eq!(running.wait().code(), 0);
    assert!(has_ended(&project));
}

#[test]
fn death_of_the_parent_ends_the_step() {
    let project = Project::of(&[("request.json", &endless())]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let script = format!("{} crayfish < request.json & wait", env!("CARGO_BIN_EXE_raymond"));
    let parent = project.spawn_writing(writer, "bash", &["-c", &script]);
    until("it has started", || project.path("started").exists());
    parent.signal(Signal::KILL);
    let mut reply = String::new();
    std::io::Read::read_to_string(&mut reader, &mut reply).unwrap();
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(reply["error"], "cancelled");
    assert!(has_ended(&project));
    drop(parent);
}

#[test]
fn unread_progress_blocks_nothing() {
    let steps: Vec<Value> = (0..2_000)
        .map(|n| {
            json!({ "id": format!("s{n}_{}", "x".repeat(100)), "kind": "if",
                         "cond": { "op": "exists", "path": "$.vars.x" }, "then": [] })
        })
        .chain((0..400).map(|n| {
            json!({ "id": format!("e{n}_{}", "x".repeat(100)), "kind": "agent",
                                        "prompt": "x", "schema": true })
        }))
        .collect();
    let outputs: serde_json::Map<String, Value> =
        (0..400).map(|n| (format!("e{n}_{}", "x".repeat(100)), json!(1))).collect();
    let call = json!({ "action": "run", "workflow": { "steps": steps }, "agentOutputs": outputs });
    let project = Project::of(&[]);
    let (unread, stderr) = std::io::pipe().unwrap();
    let answered = project.start_with_stderr(call.to_string(), stderr, "crayfish").wait();
    assert_eq!(answered.json()["status"], "done");
    drop(unread);
}

#[test]
fn only_the_caller_continues_a_tool_run() {
    let project = Project::of(&[]);
    let call = json!({ "action": "run", "workflow": flow(), "runId": "r" });
    project.sends(call.to_string(), "crayfish -q").says(0, "");
    project
        .raymond("why r")
        .prints("waiting: the caller has to answer `r:v:1`\n→ raymond crayfish < request.json\n");
    project.raymond("resume r").says(
        2,
        "raymond: r is a run of the tool crayfish: only its caller can continue it
        hint: call the tool again with \"runId\": \"r\"",
    );
    assert_eq!(project.raymond("status r --json").json()["status"], "waiting");
    // Only its caller can continue the run, but every user can discard damaged records.
    let records = project.read(".raymond/runs/r/journal.jsonl").lines().count() - 1;
    let output = project.raymond(&format!("resume r --truncate-to {}", records - 1));
    output.prints("").mentions(
        0,
        &["only its caller can continue it: call the tool again with \"runId\": \"r\""],
    );
    assert_eq!(project.events("r", "run_resumed"), [json!(null); 0]);
    let state: Value = serde_json::from_str(&project.read(".raymond/state/r.json")).unwrap();
    assert_eq!(state["status"], project.raymond("status r --json").json()["status"]);
}

#[test]
fn takeover_leaves_a_tool_run_to_its_caller() {
    let project = Project::of(&[]);
    let call = json!({ "action": "run", "workflow": flow(), "runId": "r" });
    project.sends(call.to_string(), "crayfish -q").says(0, "");
    let owner = json!({
        "pid": 1, "started": 1, "boot": "another", "host": "elsewhere", "since": 0, "version": "0.1.0"
    });
    project.write(".raymond/runs/r/lock", owner.to_string());
    let refused = project.sends(call.to_string(), "crayfish -q").json();
    assert_eq!(refused["error"], "run_locked", "{refused}");
    let freed = project.raymond("resume r --takeover --json");
    freed.mentions(0, &["only its caller can continue it: call the tool again"]);
    assert_eq!(freed.json()["run_id"], "r");
    let asked = project.sends(call.to_string(), "crayfish -q").json();
    assert_eq!(asked["status"], "needs_agent", "{asked}");
}
