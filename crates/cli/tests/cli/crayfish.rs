//! `raymond crayfish`: one request, one reply; and what can be asked about documents.

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
      "then": [ { "id": "judge", "kind": "agent", "prompt": "Judge it.",
                  "input": { "what": "{{results.fetch.json}}" }, "schema": { "$ref": "Verdict" } } ] }
  ]
}
"#;

#[test]
fn valid_documents_are_told_on_stdout() {
    let project = Project::of(&[("flow.json", FLOW), ("schemas/Verdict.json", "{}")]);
    let check = project.raymond("crayfish validate flow.json --schema-path schemas");
    check.says(0, "").prints("flow.json: valid, 3 steps\n");
    let json = project.raymond("crayfish validate flow.json --schema-path schemas --json").json();
    let file = json!({ "file": "flow.json", "ok": true, "steps": 3 });
    assert_eq!(json, json!({ "version": 1, "ok": true, "files": [file] }));
    // Schemas are looked for in the workspace.
    project.raymond("crayfish validate flow.json --workspace schemas --schema-path .").says(0, "");
    project
        .sends(r#"{ "steps": [] }"#, "crayfish validate -")
        .says(0, "")
        .prints("-: valid, 0 steps\n");
}

#[test]
fn all_mistakes_of_all_documents_are_told_with_file_line_and_pointer() {
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
        "flow.json:8:86: error: /steps/1/then/0/schema/$ref: there is no schema named `Verdict` [bad-step]
        raymond: the document has a mistake
        bad.json:6:7: error: /x: a workflow has no key `x` [bad-step]
        bad.json:3:3: error: /steps/0: an exec step needs `shell` or `run` [bad-step]
        bad.json:4:3: error: /steps/1: a step is an object, not a number [bad-step]
        raymond: the document has 3 mistakes
        broken.json:2:1: error: the text ends where a key in double quotes is expected [bad-step]
        raymond: the document has a mistake
        raymond: there is no nope.json
        hint: did you mean good.json?
        raymond: 4 of 5 documents cannot be used",
    );
    check.prints("good.json: valid, 0 steps\n");
}

#[test]
fn mistakes_as_json() {
    let project = Project::of(&[("bad.json", "{\n  \"steps\": 7\n}")]);
    let check = project.raymond("crayfish validate bad.json nope.json --json");
    check.says(2, "");
    let expected = json!({ "version": 1, "ok": false, "files": [
        { "file": "bad.json", "ok": false, "errors": [
            { "path": "/steps", "message": "an array is expected, not a number", "line": 2, "column": 12 } ] },
        { "file": "nope.json", "ok": false, "errors": [
            { "path": "", "message": "there is no nope.json" } ] },
    ] });
    assert_eq!(check.json(), expected);
}

#[test]
fn the_schemas_are_printed_as_they_are() {
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
fn a_document_is_explained_as_a_tree() {
    let project = Project::of(&[("flow.json", FLOW)]);
    project.raymond("crayfish explain flow.json").says(0, "").prints(
        "digest, version 2: 3 steps
vars mode
├ fetch  exec  ./fetch {{vars.mode}} …
│   reads vars.mode · stdout: any JSON · 2 attempts of at most 30s each
└ gate  if  $.results.fetch exists
  └ judge  agent  Judge it.
      reads results.fetch.json · answers Verdict · 3 attempts
",
    );
    let steps = project.raymond("crayfish explain flow.json --json").json()["steps"].clone();
    let judge = json!({
        "id": "judge", "kind": "agent", "path": "/steps/1/then/0", "inside": "gate", "does": "Judge it.",
        "facts": ["reads results.fetch.json", "answers Verdict", "3 attempts"],
    });
    assert_eq!(steps[2], judge);
    project.write("bad.json", "{}");
    project
        .raymond("crayfish explain bad.json")
        .mentions(2, &["bad.json:1:1: error: ", "[bad-step]"]);
}

#[test]
fn a_request_that_cannot_be_read_is_a_bad_request_and_exit_2() {
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
    check(b"{\"a\": 1, \"a\": 2}", "the key `a` stands twice");
    check(b"\"\xff\"", "this is not UTF-8");
    check(&[b'['; 5_000], "arrays and objects stand inside each other");
}

/// A request whose one step is `shell`.
fn request(shell: &str) -> String {
    let step = json!({ "id": "a", "kind": "exec", "shell": shell });
    json!({ "action": "run", "workflow": { "steps": [step] } }).to_string()
}

#[test]
fn a_request_beyond_the_limit_is_refused_without_being_kept() {
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
fn a_signal_while_the_request_is_read_is_answered() {
    let project = Project::of(&[]);
    let (reader, writer) = std::io::pipe().unwrap();
    let (mut replied, stdout) = std::io::pipe().unwrap();
    let running = project.start_between(reader, stdout, "crayfish");
    // It listens once it has taken what was sent.
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
fn a_configuration_that_cannot_be_read_is_a_reply_too() {
    let project = Project::of(&[("raymond.toml", "[agents]\nmusk = 1\n")]);
    let reply = project.sends(request("true"), "crayfish").says(0, "").json();
    assert_eq!(reply["error"], "bad_workspace");
    let expected = "raymond.toml:2:8: error: agents.\"musk\" is not a table";
    assert!(reply["message"].as_str().unwrap().contains(expected), "{reply}");
}
