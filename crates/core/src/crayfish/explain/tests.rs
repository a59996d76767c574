use serde_json::{Value, json};

use super::*;

fn plan(document: &Value) -> String {
    let document = Document::parse(document).unwrap();
    let mut out = format!("{}\n", title(&document));
    for line in shared(&document) {
        out += &(line + "\n");
    }
    for TreeLine { lead, below, name, kind, does, description, facts, .. } in lines(&document) {
        out.push_str(format!("{lead}{name} {kind} {does}").trim_end());
        out.push('\n');
        if let Some(text) = description {
            out += &[below.as_str(), &text, "\n"].concat();
        }
        for fact in facts {
            out += &[below.as_str(), &fact, "\n"].concat();
        }
    }
    out
}

/// Returns a document with every kind of step.
fn digest() -> Value {
    json!({
        "name": "digest", "version": 2,
        "vars": { "mode": "daily", "tmp": "out" },
        "env": { "LANG": "C" },
        "steps": [
            { "id": "fetch", "kind": "exec", "description": "gets the tweets", "shell": "./fetch '{{vars.tmp}}'\necho done",
              "timeoutMs": 30000, "retries": 2,
              "io": { "mode": "stream", "outputSchema": { "type": "array", "items": { "$ref": "Tweet.json" } } } },
            { "id": "cluster", "kind": "agent", "prompt": "Group them.\nStrictly.",
              "input": { "items": "{{results.fetch.json}}" },
              "schema": { "type": "object", "required": ["clusters"],
                          "properties": { "clusters": { "type": "array" }, "note": { "type": "string" } } },
              "assigneeAgentId": "musk", "session": { "mode": "sticky", "label": "wf:1:musk", "reset": true } },
            { "id": "each", "kind": "forEach", "listPath": "$.results.cluster.json.clusters",
              "itemVar": "cluster", "parallel": true, "onError": "collect", "body": [
                { "id": "gate", "kind": "if", "cond": { "op": "eq", "path": "$.vars.mode", "value": "daily" },
                  "then": [ { "id": "verify", "kind": "agent", "retries": 1, "prompt": "Check {{locals.cluster.id}}.",
                              "schema": { "enum": ["yes", "no"] } } ],
                  "else": [ { "id": "skip", "kind": "exec", "run": { "kind": "cmd", "cmd": "echo", "args": ["not today"] } } ] } ] },
            { "id": "mend", "kind": "while", "maxIters": 3, "onMaxIters": "continue",
              "until": { "op": "gt", "path": "$.results.try.json.score", "value": 0.5 }, "body": [
                { "id": "try", "kind": "exec", "shell": "./try", "env": { "N": "1" },
                  "io": { "mode": "stream", "inputFrom": { "stepId": "cluster", "jsonPath": "$.clusters[0]" } } } ] },
            { "id": "render", "kind": "exec", "shell": "./render",
              "io": { "in": { "raw": { "path": "{{vars.tmp}}/raw.json", "schema": { "$ref": "Raw" } } },
                      "out": { "page": { "path": "page.json" } } } },
        ],
    })
}

#[test]
fn document_is_shown_as_a_tree() {
    insta::assert_snapshot!(plan(&digest()), @r#"
    digest, version 2: 9 steps
    vars mode, tmp
    env LANG
    ├ fetch exec ./fetch '{{vars.tmp}}' …
    │   gets the tweets
    │   reads vars.tmp
    │   stdout: array of Tweet
    │   2 attempts of at most 30s each
    ├ cluster agent Group them. …
    │   reads results.fetch.json
    │   answers object {clusters: array, note?: string}
    │   3 attempts
    │   for musk
    │   sticky session wf:1:musk, reset
    ├ each forEach cluster of $.results.cluster.json.clusters
    │ │ all at once, at most 4 programs at a time
    │ │ failures are collected
    │ └ gate if $.vars.mode = "daily"
    │   ├ then
    │   │ └ verify agent Check {{locals.cluster.id}}.
    │   │     reads locals.cluster.id
    │   │     answers "yes" | "no"
    │   │     1 attempt
    │   └ else
    │     └ skip exec echo 'not today'
    │         without a shell
    │         at most 3m
    ├ mend while until $.results.try.json.score > 0.5
    │ │ at most 3 times
    │ │ then it continues
    │ └ try exec ./try
    │     reads results.cluster.json.clusters[0]
    │     stdout: any JSON
    │     env N
    │     at most 3m
    └ render exec ./render
        reads vars.tmp
        in raw = {{vars.tmp}}/raw.json: Raw
        out page = page.json
        at most 3m
    "#);
}

#[test]
fn loops_show_their_limits() {
    let check = |step: &Value, does: &str, facts: &[&str]| {
        let document = Document::parse(&json!({ "vars": { "l": [] }, "steps": [step] })).unwrap();
        let line = lines(&document).next().unwrap();
        assert_eq!(
            (line.does.as_str(), line.facts),
            (does, facts.iter().map(|f| (*f).to_owned()).collect())
        );
    };
    let each = |more: Value| {
        let mut each = json!({ "id": "e", "kind": "forEach", "listPath": "$.vars.l", "itemVar": "x", "body": [] });
        each.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        each
    };
    check(&each(json!({})), "x of $.vars.l", &["one after the other"]);
    check(
        &each(json!({ "parallel": true, "maxParallel": 1 })),
        "x of $.vars.l",
        &["all at once, at most 1 program at a time", "a failure fails it"],
    );
    let until = json!({ "op": "exists", "path": "$.vars.l" });
    check(
        &json!({ "id": "w", "kind": "while", "maxIters": 1, "until": until, "body": [] }),
        "until $.vars.l exists",
        &["at most 1 time", "then it fails"],
    );
}

#[test]
fn unshared_session_is_not_shown_as_shared() {
    let asks = |session: Value| {
        let step =
            json!({ "id": "a", "kind": "agent", "prompt": "p", "schema": {}, "session": session });
        let document = Document::parse(&json!({ "steps": [step] })).unwrap();
        lines(&document).next().unwrap().facts.pop().unwrap()
    };
    assert_eq!(asks(json!({ "label": "x" })), "session without `mode`: a new one each time");
    assert_eq!(asks(json!({ "mode": "sticky", "label": "x" })), "sticky session x");
}

#[test]
fn if_without_else_has_no_branch_lines() {
    let cond = json!({ "op": "exists", "path": "$.vars.a" });
    let exec = |id: &str| json!({ "id": id, "kind": "exec", "shell": "true" });
    let gate = |then: Value| json!({ "id": "gate", "kind": "if", "cond": cond, "then": then });
    let steps = json!([gate(json!([exec("one"), exec("two")]))]);
    insta::assert_snapshot!(plan(&json!({ "steps": steps })), @r"
    a workflow without a name: 3 steps
    └ gate if $.vars.a exists
      ├ one exec true
      │   at most 3m
      └ two exec true
          at most 3m
    ");
}

#[test]
fn command_words_without_expressions_are_quoted() {
    let check = |args: Value, expected: &str| {
        let run = json!({ "kind": "cmd", "cmd": "cp", "args": args });
        let step = json!({ "id": "c", "kind": "exec", "run": run });
        let document = Document::parse(&json!({ "steps": [step] })).unwrap();
        assert_eq!(lines(&document).next().unwrap().does, expected);
    };
    check(json!(["a", "my file"]), "cp a 'my file'");
    check(json!(["{{vars.from}}/my file", "{{vars.to}}"]), "cp {{vars.from}}/my file {{vars.to}}");
}

#[test]
fn the_gist_of_a_schema_is_short() {
    let check = |schema: Value, expected: &str| assert_eq!(gist(&schema), expected, "{schema}");
    check(json!(true), "any JSON");
    check(json!({}), "any JSON");
    check(json!(false), "nothing");
    check(json!({ "type": "string" }), "string");
    check(json!({ "type": ["string", "null"] }), "string | null");
    check(json!({ "const": { "a": 1 } }), "{\"a\":1}");
    check(json!({ "enum": ["a", 1] }), "\"a\" | 1");
    check(json!({ "$ref": "Name.json" }), "Name");
    check(json!({ "$ref": "#/$defs/item" }), "item");
    check(json!({ "type": "array", "items": { "type": "number" } }), "array of number");
    let list = |items: Value| json!({ "type": "array", "items": items });
    check(list(list(list(json!({ "type": "number" })))), "array of array of array");
    check(json!({ "enum": [1, 2, 3, 4, 5, 6, 7, 8] }), "1 | 2 | 3 | 4 | 5 | 6 | 7 | 8");
    check(json!({ "enum": [1, 2, 3, 4, 5, 6, 7, 8, 9] }), "1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | …");
    check(json!({ "enum": (0..20).collect::<Vec<_>>() }), "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | …");
    check(json!({ "type": "object" }), "object");
    check(
        json!({ "properties": { "a": {}, "b": { "type": "object", "properties": { "c": { "type": "object", "properties": { "d": true } } } } }, "required": ["a"] }),
        "object {a, b?: object {c?: object}}",
    );
    check(json!({ "anyOf": [true] }), "JSON of its schema");
    let fields = |count: u32| -> serde_json::Map<String, Value> {
        (0..count).map(|n| (format!("f{n:02}"), json!(true))).collect()
    };
    check(
        json!({ "type": "object", "properties": fields(8) }),
        "object {f00?, f01?, f02?, f03?, f04?, f05?, f06?, f07?}",
    );
    check(
        json!({ "type": "object", "properties": fields(20) }),
        "object {f00?, f01?, f02?, f03?, f04?, f05?, f06?, f07?, …}",
    );
}

#[test]
fn deepest_document_is_shown_without_recursion() {
    let mut step = json!({ "id": "s0", "kind": "exec", "shell": "true" });
    for depth in 1..400 {
        let cond = json!({ "op": "exists", "path": "$.vars.x" });
        step = json!({ "id": format!("s{depth}"), "kind": "if", "cond": cond, "then": [step] });
    }
    let document = Document::parse(&json!({ "steps": [step] })).unwrap();
    let last = lines(&document).last().unwrap();
    assert_eq!((last.name.as_str(), last.lead), ("s0", "  ".repeat(399) + "└ "));
}
