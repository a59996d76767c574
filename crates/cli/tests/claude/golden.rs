//! Real runs that `raymond replay` decides again, and their golden journals.
//!
//! `UPDATE=1` writes journals that do not exist yet, with `/project` as the path of the project.

use std::fs;
use std::sync::Arc;

use raymond_store::disk::RealDisk;
use raymond_store::{Blobs, Journal};
use raymond_testkit::journals::{Golden, NewGolden};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::until;
use crate::stage::Stage;

/// Checks that a replay of the run decides the same, and saves its journal if there is none yet.
#[track_caller]
fn golden(name: &str, stage: &Stage, ending: &str) {
    let ended = stage.project.events("r", "run_ended");
    assert_eq!(ended.last().map(|event| &event["ending"]), Some(&json!(ending)));
    let records = stage.project.records("r").len();
    stage
        .raymond("replay r")
        .prints(&format!("{records} records: every decision is the same\n"))
        .says(0, "");
    if Golden::named(name).exists() {
        return;
    }
    assert!(std::env::var_os("UPDATE").is_some(), "{name} does not exist: UPDATE=1 makes it");
    seal(name, stage);
}

fn seal(name: &str, stage: &Stage) {
    let directory = stage.project.path(".raymond/runs/r");
    let read = Journal::read(&RealDisk, &directory.join("journal.jsonl")).unwrap();
    let blobs = Blobs::new(Arc::new(RealDisk), directory.join("blobs"));
    let hidden = |line: &[u8]| stage.hidden(str::from_utf8(line).unwrap()).into_bytes();
    let bodies = read.lines.iter().map(|line| hidden(line.body)).collect();
    let blob = |hash: &str| blobs.get(hash).map_err(|error| error.to_string());
    NewGolden { name, header: read.header, bodies, blob: &blob }.write().unwrap();
}

#[test]
fn every_tag() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <fork next='CALL' cd='sub' item='7'>WORKER</fork>"),
        ("WORKER", "fake: say <result>worked on {{item}}</result>"),
        ("CALL", "fake: say <call return='BACK' input='go' model='opus'>SUB</call>"),
        ("SUB", "fake: deny Bash rm\nfake: say <result>found</result>"),
        ("BACK", "fake: say <function return='RESET'>SUB</function>"),
        ("RESET", "fake: say no tag\nfake[reminder]: say <reset cd='sub'>GOTO</reset>"),
        ("GOTO", "fake: say <goto>LAST</goto>"),
    ]);
    stage.project.write("sub/.keep", "");
    stage.project.write("wf/LAST.sh", "echo '<result>done</result>'");
    stage.run("").prints("done\n");
    golden("claude-every-tag", &stage, "completed");
}

#[test]
fn killed_owner_and_adopted_client() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <goto>SLOW</goto>"),
        ("SLOW", "fake: wait gate\nfake: say <result>done</result>"),
    ]);
    let running = stage.start_run("");
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    let resumed = stage.start("resume r");
    until("the run is resumed", || !stage.project.events("r", "run_resumed").is_empty());
    stage.opens("gate");
    resumed.wait().prints("done\n");
    golden("claude-adopted", &stage, "completed");
}

#[test]
fn stop_then_resume_then_cancel() {
    let stage = Stage::prompts(&[("START", "fake: wait gate\nfake: say <result>done</result>")]);
    let running = stage.start_run("");
    stage.reaches("gate");
    stage.raymond("stop r").mentions(0, &[]);
    running.wait();
    let resumed = stage.start("resume r");
    until("the run is resumed", || stage.project.events("r", "turn_started").len() == 2);
    stage.raymond("cancel r").mentions(0, &[]);
    resumed.wait();
    golden("claude-stopped-and-cancelled", &stage, "cancelled");
}

#[test]
fn reached_and_raised_cap() {
    let stage = Stage::prompts(&[
        ("START", "fake: cost 0.06\nfake: say <goto>MORE</goto>"),
        ("MORE", "fake: cost 0.06\nfake: say <goto>LAST</goto>"),
        ("LAST", "fake: say <result>done</result>"),
    ]);
    assert_eq!(stage.run("--budget 0.10").code(), 5);
    stage.raymond("resume r --budget 1").prints("done\n");
    golden("claude-over-budget", &stage, "completed");
}

#[test]
fn failure_then_edit_then_rewind() {
    let stage =
        Stage::prompts(&[("START", "fake: say <goto>NEXT</goto>"), ("NEXT", "fake: say no tag")]);
    assert_eq!(stage.run("--reminders 0").code(), 1);
    stage.project.write("wf/NEXT.md", "NEXT, edited\nfake: say <result>done</result>\n");
    stage.raymond("resume r --with-current").prints("done\n");
    stage.raymond("resume r --truncate-to 5").prints("done\n");
    golden("claude-edited-and-cut-back", &stage, "completed");
}

#[test]
fn repeated_prompt() {
    let stage = Stage::of(&[("PROMPT.md", "Work.\nfake: say <result>done</result>\n")]);
    let words =
        ["ralph", "PROMPT.md", "--run-id", "r", "--until", "test -e ok || { touch ok; false; }"];
    stage.start_words(&words).wait().prints("done\n");
    golden("claude-ralph", &stage, "completed");
}

#[test]
fn two_backends_and_many_flags() {
    let replies = "START: { text: <function return=\"BACK\">LOOK</function>, cost: 0.02 }\n\
        LOOK: { text: <result>seen</result>, cost: 0.01 }\nBACK: <result>done</result>\n";
    let stage = Stage::of(&[
        ("wf/START.md", "---\nbackend: claude\n---\nBegin with {{goal}}: {{input}}."),
        ("wf/LOOK.md", "---\nbackend: codex\nallowed_tags: [result]\n---\nLook."),
        ("wf/BACK.md", "---\nbackend: claude\nbudget: 2\n---\nEnd: {{result}}."),
        ("replies.yaml", replies),
    ]);
    let flags = "--replies replies.yaml --input text --var goal=ship --budget none --model sonnet \
        --max-parallel 2 --max-agents 9 --reminders 1 --retries 2 --timeout 10m --idle-timeout 90s \
        --no-wait --on-lost-session fresh --interrupted-scripts fail";
    stage.run(flags).prints("done\n");
    golden("replies-two-backends", &stage, "completed");
}

const FLOW: &str = r#"{
  "name": "golden", "vars": { "items": ["a", "b"] },
  "steps": [
    { "id": "make", "kind": "exec", "shell": "echo '{\"n\": 1}' > made.json",
      "io": { "out": { "made": { "path": "made.json", "schema": { "required": ["n"] } } } } },
    { "id": "ask", "kind": "agent", "prompt": "Look.", "retries": 2,
      "schema": { "type": "object", "required": ["foo"] } },
    { "id": "each", "kind": "forEach", "listPath": "$.vars.items", "itemVar": "item",
      "parallel": true, "onError": "collect", "body": [
        { "id": "one", "kind": "exec", "shell": "test {{locals.item}} = a", "retries": 2 } ] },
    { "id": "if", "kind": "if", "cond": { "op": "exists", "path": "$.results.ask.json.foo" }, "then": [
        { "id": "echo", "kind": "exec", "run": { "kind": "cmd", "cmd": "cat" },
          "io": { "mode": "stream", "inputFrom": "ask", "outputSchema": { "type": "object" } } } ] },
    { "id": "again", "kind": "while", "maxIters": 2, "onMaxIters": "continue",
      "until": { "op": "eq", "path": "$.results.tick.ok", "value": false }, "body": [
        { "id": "tick", "kind": "exec", "shell": "true" } ] },
    { "id": "last", "kind": "exec", "shell": "test -e fixed" }
  ]
}"#;

#[test]
fn document_driven_by_raymond() {
    let replies = "ask: ['[]', '{\"foo\": \"bar\"}']\n";
    let stage = Stage::of(&[("flow.json", FLOW), ("replies.yaml", replies)]);
    let run = "run flow.json --replies replies.yaml --run-id r";
    assert_eq!(stage.raymond(run).code(), 1);
    stage.project.write("fixed", "");
    assert_eq!(stage.raymond("resume r").code(), 0);
    golden("steps-driven", &stage, "completed");
}

#[test]
fn document_called_as_a_tool() {
    let stage = Stage::of(&[("fixed", "")]);
    let workflow: Value = serde_json::from_str(FLOW).unwrap();
    let call = |request: Value| {
        let reply = stage.project.sends(request.to_string(), "crayfish --workspace .").json();
        reply["status"].as_str().map(str::to_owned)
    };
    let request = json!({ "action": "run", "workflow": workflow, "runId": "r" });
    assert_eq!(call(request.clone()).as_deref(), Some("needs_agent"));
    let mut with = request.clone();
    with["agentOutputs"] = json!({ "ask": [] });
    assert_eq!(call(with).as_deref(), Some("needs_agent"));
    let mut with = request;
    with["agentOutputs"] = json!({ "ask": { "foo": "x".repeat(20_000) } });
    with["attempts"] = json!({ "ask": 2 });
    assert_eq!(call(with).as_deref(), Some("done"));
    golden("steps-called", &stage, "completed");
}

// proves: P7
#[test]
fn replay_reports_the_first_difference() {
    let stage = Stage::prompts(&[("START", "fake: say <result>done</result>")]);
    stage.run("").prints("done\n");
    // A release that charges a cent more would write this.
    let directory = stage.project.path(".raymond/runs/r");
    let path = directory.join("journal.jsonl");
    let read = Journal::read(&RealDisk, &path).unwrap();
    fs::remove_file(&path).unwrap();
    let mut journal = Journal::create(Arc::new(RealDisk), &path, &read.header).unwrap();
    for line in read.lines.iter() {
        let line = str::from_utf8(line.body).unwrap();
        let dearer = line.replace(r#""charge":{"amount":10000,"#, r#""charge":{"amount":20000,"#);
        journal.append(dearer.as_bytes()).unwrap();
    }
    let before = fs::read(&path).unwrap();
    let replayed = stage.raymond("replay r");
    let first = "record 2, step 1, event 1 is decided otherwise\nrecorded  {\"turn_settled\":";
    assert!(replayed.stdout.starts_with(first), "{replayed:?}");
    assert_eq!((replayed.code(), replayed.stdout.lines().count()), (1, 3), "{replayed:?}");
    let replayed = stage.raymond("replay r --json").json();
    let difference = &replayed["difference"];
    let amount = |side: &str| &difference[side]["turn_settled"]["charge"]["amount"];
    assert_eq!(
        (amount("recorded"), amount("decided")),
        (&json!(20_000), &json!(10_000)),
        "{replayed}"
    );
    assert_eq!(
        (&replayed["records"], &difference["refused"]),
        (&json!(2), &Value::Null),
        "{replayed}"
    );
    // A replay does not change the journal.
    assert_eq!(fs::read(&path).unwrap(), before);
    stage.raymond("replay none").mentions(2, &["there is no run"]);
}
