//! Valid documents, and the types they are read into.

use std::sync::Arc;

use std::collections::BTreeMap;

use super::*;
use crate::budget::Micros;
use crate::crayfish::condition::{Condition, Test};
use crate::crayfish::document::{
    AgentSettings, AgentStep, Cap, Contract, ExecStep, ForEach, If, InputSource, Invocation, Io,
    OnError, OnMaxIters, Order, SessionChoice, SessionMode, StreamInput, While,
};
use crate::crayfish::template::Template;
use crate::time::Span;

fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

/// Reads a document with one step and returns its kind.
fn kind(mut step: Value) -> StepKind {
    step["id"] = "s".into();
    let document = Document::parse(&json!({ "steps": [step] })).unwrap();
    document.steps()[0].kind.clone()
}

fn plain_exec() -> ExecStep {
    ExecStep {
        invocation: Invocation::Shell(template("x")),
        timeout: Span(180_000),
        retries: Cap::new(1).unwrap(),
        env: BTreeMap::new(),
        io: Io::None,
    }
}

#[test]
fn an_exec_step_has_its_defaults() {
    assert_eq!(kind(json!({ "kind": "exec", "shell": "x" })), StepKind::Exec(plain_exec()));
    let run = json!({
        "kind": "exec", "run": { "kind": "cmd", "cmd": "ls", "args": ["-l", "{{vars.d}}"] },
        "timeoutMs": 5, "retries": 5, "env": { "A": "{{vars.x}}" },
    });
    let args = vec![template("-l"), template("{{vars.d}}")];
    let expected = ExecStep {
        invocation: Invocation::Cmd { cmd: template("ls"), args },
        timeout: Span(5),
        retries: Cap::new(5).unwrap(),
        env: BTreeMap::from([("A".to_owned(), template("{{vars.x}}"))]),
        io: Io::None,
    };
    assert_eq!(kind(run), StepKind::Exec(expected));
}

#[test]
fn file_mode_is_the_default_with_files() {
    let check = |io: Value, expected: Io| {
        let step = json!({ "kind": "exec", "shell": "x", "io": io });
        assert_eq!(kind(step), StepKind::Exec(ExecStep { io: expected, ..plain_exec() }), "{io}");
    };
    let file = |name: &str, path: &str, schema: Option<Value>| Contract {
        name: name.to_owned(),
        path: template(path),
        schema: schema.map(Arc::new),
    };
    check(json!({}), Io::None);
    check(json!({ "mode": "none" }), Io::None);
    let raw = json!({ "raw": { "path": "data/{{vars.d}}..json" } });
    let inputs = || vec![file("raw", "data/{{vars.d}}..json", None)];
    check(json!({ "in": raw }), Io::File { inputs: inputs(), outputs: vec![] });
    check(json!({ "mode": "file", "in": raw }), Io::File { inputs: inputs(), outputs: vec![] });
    check(json!({ "mode": "file" }), Io::File { inputs: vec![], outputs: vec![] });
    let norm = json!({ "norm": { "path": "data/norm.json", "schema": { "$ref": "TweetsNorm" } } });
    let outputs = vec![file("norm", "data/norm.json", Some(json!({ "$ref": "TweetsNorm" })))];
    check(json!({ "out": norm }), Io::File { inputs: vec![], outputs });
    check(json!({ "mode": "stream" }), Io::Stream { input: None, output_schema: None });
    check(
        json!({ "mode": "stream", "outputSchema": true }),
        Io::Stream { input: None, output_schema: Some(json!(true).into()) },
    );
}

#[test]
fn stream_reads_all_or_part_of_json() {
    let read = |from: Value| {
        let io = json!({ "mode": "stream", "inputFrom": from, "inputSchema": {} });
        let step = json!({ "id": "s", "kind": "exec", "shell": "x", "io": io });
        let document = Document::parse(&json!({ "steps": [agent("a"), step] })).unwrap();
        let kind = &document.steps()[1].kind;
        let StepKind::Exec(ExecStep { io: Io::Stream { input: Some(input), .. }, .. }) = kind
        else {
            panic!("{kind:?}")
        };
        input.clone()
    };
    let expected = |path: &str| StreamInput {
        from: InputSource { step: "a".parse().unwrap(), path: path.parse().unwrap() },
        schema: Some(json!({}).into()),
    };
    assert_eq!(read(json!("a")), expected("$"));
    assert_eq!(read(json!({ "stepId": "a" })), expected("$"));
    assert_eq!(read(json!({ "stepId": "a", "jsonPath": "$.x[0]" })), expected("$.x[0]"));
}

#[test]
fn an_agent_step_has_its_defaults() {
    let least = AgentStep {
        prompt: template("p"),
        input: None,
        schema: json!({ "$ref": "Verify" }).into(),
        retries: Cap::new(3).unwrap(),
        assignee: None,
        session: None,
        settings: AgentSettings::default(),
    };
    let step = json!({ "kind": "agent", "prompt": "p", "schema": { "$ref": "Verify" } });
    assert_eq!(kind(step), StepKind::Agent(least.clone()));
    let step = json!({
        "kind": "agent", "prompt": "p", "schema": false, "retries": 1.0, "assigneeAgentId": "musk",
        "session": { "mode": "sticky", "label": "wf:123:musk", "reset": true },
    });
    let session = SessionChoice {
        mode: Some(SessionMode::Sticky),
        label: Some("wf:123:musk".to_owned()),
        reset: Some(true),
    };
    let expected = AgentStep {
        schema: json!(false).into(),
        retries: Cap::new(1).unwrap(),
        assignee: Some("musk".to_owned()),
        session: Some(session),
        ..least
    };
    assert_eq!(kind(step), StepKind::Agent(expected));
    let step = json!({ "kind": "agent", "prompt": "p", "schema": {}, "session": {} });
    let StepKind::Agent(step) = kind(step) else { panic!("an agent step") };
    assert_eq!(step.session, Some(SessionChoice::default()));
}

#[test]
fn agent_step_has_settings_of_its_own() {
    let step = json!({
        "kind": "agent", "prompt": "p", "schema": {}, "description": "what it is for",
        "model": "opus", "allow": ["Bash(make:*)"], "budget": 0.5,
    });
    let StepKind::Agent(step) = kind(step) else { panic!("an agent step") };
    let expected = AgentSettings {
        model: Some("opus".to_owned()),
        allow: vec!["Bash(make:*)".to_owned()],
        budget: Some(Micros(500_000)),
    };
    assert_eq!(step.settings, expected);
}

#[test]
fn steps_that_hold_steps_have_their_defaults() {
    let condition = || Condition { path: "$.vars.x".parse().unwrap(), test: Test::Exists };
    let exists = json!({ "op": "exists", "path": "$.vars.x" });
    assert_eq!(
        kind(json!({ "kind": "if", "cond": exists, "then": [] })),
        StepKind::If(If { condition: condition(), then: vec![], otherwise: vec![] })
    );
    let repeat = |on_max_iters| {
        let max_iters = Cap::new(3).unwrap();
        StepKind::While(While { until: condition(), max_iters, on_max_iters, body: vec![] })
    };
    let mut step = json!({ "kind": "while", "until": exists, "maxIters": 3, "body": [] });
    assert_eq!(kind(step.clone()), repeat(OnMaxIters::Fail));
    step["onMaxIters"] = "continue".into();
    assert_eq!(kind(step), repeat(OnMaxIters::Continue));
}

#[test]
fn a_parallel_loop_has_its_defaults() {
    let check = |extra: &[(&str, Value)], order: Order| {
        let mut step = each("s", "$.vars.x", "i", &json!([]));
        for (key, value) in extra {
            step[*key] = value.clone();
        }
        let list = "$.vars.x".parse().unwrap();
        let expected = ForEach { list, item: "i".to_owned(), order, body: vec![] };
        assert_eq!(kind(step), StepKind::ForEach(expected), "{extra:?}");
    };
    let parallel = |max_parallel, on_error| Order::Parallel { max_parallel, on_error };
    let yes = || ("parallel", json!(true));
    check(&[], Order::Sequential);
    check(&[("parallel", json!(false))], Order::Sequential);
    check(&[yes()], parallel(4, OnError::Fail));
    check(&[yes(), ("maxParallel", json!(1000))], parallel(1000, OnError::Fail));
    check(&[yes(), ("onError", json!("collect"))], parallel(4, OnError::Collect));
}

#[test]
fn conditions_are_of_five_operators() {
    let check = |condition: Value, expected: Test| {
        let step = kind(json!({ "kind": "if", "cond": condition, "then": [] }));
        let StepKind::If(If { condition, .. }) = step else { panic!("an if step") };
        assert_eq!(condition.test, expected);
    };
    let path = "$.vars.x";
    check(json!({ "op": "exists", "path": path }), Test::Exists);
    check(json!({ "op": "eq", "path": path, "value": null }), Test::Equals(json!(null)));
    check(json!({ "op": "ne", "path": path, "value": [1] }), Test::Differs(json!([1])));
    check(json!({ "op": "gt", "path": path, "value": 5 }), Test::Above(5.into()));
    check(json!({ "op": "lt", "path": path, "value": 5 }), Test::Below(5.into()));
}

#[test]
fn document_has_lists_and_places_of_steps() {
    let inner = each("inner", "$.locals.i", "j", &json!([agent("c")]));
    let gate = json!({
        "id": "gate", "kind": "if", "cond": { "op": "exists", "path": "$.results.a" },
        "then": [each("outer", "$.vars.l", "i", &json!([exec("b"), inner]))],
        "else": [exec("d")],
    });
    let document = json!({
        "$schema": "crayfish.schema.json", "name": "n", "version": 1.5, "vars": { "a": 1, "b": 2 },
        "env": { "E": "{{vars.a}}" }, "steps": [exec("a"), gate, exec("e")],
    });
    let document = Document::parse(&document).unwrap();
    let ids: Vec<&str> = document.steps().iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["a", "gate", "outer", "b", "inner", "c", "d", "e"]);
    let pointer = |id: &str| document.pointer(document.find(id).unwrap());
    assert_eq!(pointer("c"), "/steps/1/then/0/body/1/body/0");
    assert_eq!(pointer("d"), "/steps/1/else/0");
    let names = |list: &[StepIndex]| -> Vec<&str> {
        list.iter().map(|index| document.step(*index).id.as_str()).collect()
    };
    assert_eq!(names(document.top()), ["a", "gate", "e"]);
    let kind = |id: &str| &document.step(document.find(id).unwrap()).kind;
    let StepKind::If(gate) = kind("gate") else { panic!("an if step") };
    assert_eq!((names(&gate.then), names(&gate.otherwise)), (vec!["outer"], vec!["d"]));
    let StepKind::ForEach(outer) = kind("outer") else { panic!("a forEach step") };
    assert_eq!(names(&outer.body), ["b", "inner"]);
    let loops: Vec<StepIndex> = document.loops(document.find("c").unwrap()).collect();
    assert_eq!(names(&loops), ["inner", "outer"]);
    let key =
        |text: &str| document.find_key(&text.parse().unwrap()).map(|index| names(&[index])[0]);
    assert_eq!(key("outer[1].inner[2].c"), Some("c"));
    assert_eq!(
        (key("inner[2].c"), key("c"), key("a"), key("e[0].a")),
        (None, None, Some("a"), None)
    );
    let over = json!({ "b": { "x": 3 }, "c": 4 });
    let merged = Value::Object(document.vars_with(over.as_object().unwrap()));
    assert_eq!(merged, json!({ "a": 1, "b": { "x": 3 }, "c": 4 }));
}

#[test]
fn a_document_lists_its_schemas_with_their_pointers() {
    let title = |title: &str| json!({ "title": title });
    let stream = json!({
        "id": "x", "kind": "exec", "shell": "x",
        "io": { "mode": "stream", "inputFrom": "a", "inputSchema": title("3"), "outputSchema": title("4") },
    });
    let files = json!({
        "id": "y", "kind": "exec", "shell": "x",
        "io": {
            "in": { "a/b": { "path": "p", "schema": title("1") }, "c": { "path": "p" } },
            "out": { "d": { "path": "p", "schema": title("2") } },
        },
    });
    let steps = json!([agent("a"), each("l", "$.vars.l", "i", &json!([files, stream]))]);
    let document = Document::parse(&json!({ "steps": steps })).unwrap();
    let schemas: Vec<(String, &Value)> = document.schemas().collect();
    let expected = [
        ("/steps/0/schema".to_owned(), &json!({})),
        ("/steps/1/body/0/io/in/a~1b/schema".to_owned(), &title("1")),
        ("/steps/1/body/0/io/out/d/schema".to_owned(), &title("2")),
        ("/steps/1/body/1/io/inputSchema".to_owned(), &title("3")),
        ("/steps/1/body/1/io/outputSchema".to_owned(), &title("4")),
    ];
    assert_eq!(schemas, expected);
}

#[test]
fn every_form_that_the_language_shows_is_valid() {
    let verify = json!({
        "id": "verify", "kind": "agent", "assigneeAgentId": "musk",
        "session": { "mode": "sticky", "label": "wf:123:musk" },
        "prompt": "Output STRICT JSON ...", "input": { "clusters": [] }, "retries": 3,
        "schema": {
            "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"],
            "additionalProperties": false,
        },
    });
    let fetch = json!({
        "id": "fetch", "kind": "exec", "shell": "echo hello", "timeoutMs": 180_000, "retries": 2,
        "io": {
            "in": { "raw": { "path": "data/raw.json", "schema": { "$ref": "TweetsMerged" } } },
            "out": { "norm": { "path": "data/norm.json", "schema": { "$ref": "TweetsNorm" } } },
        },
    });
    let gate = |id: &str, cond: Value| json!({ "id": id, "kind": "if", "cond": cond, "then": [] });
    let differs =
        gate("differs", json!({ "op": "ne", "path": "$.locals.cluster.id", "value": "x" }));
    let document = json!({
        "name": "heartbeat", "version": 1, "vars": { "tmp": "/tmp/xbot" },
        "steps": [
            { "id": "mk", "kind": "exec", "shell": "mkdir -p '{{vars.tmp}}'" },
            fetch,
            gate("gate", json!({ "op": "exists", "path": "$.results.fetch" })),
            each("loop", "$.results.cluster.json.clusters", "cluster", &json!([differs])),
            {
                "id": "converge", "kind": "while", "maxIters": 3,
                "until": { "op": "exists", "path": "$.results.verify" }, "body": [verify],
            },
            gate("daily", json!({ "op": "eq", "path": "$.vars.mode", "value": "daily" })),
            gate("high", json!({ "op": "gt", "path": "$.results.score", "value": 0.7 })),
            gate("low", json!({ "op": "lt", "path": "$.results.score", "value": 0.2 })),
            agent("cluster"),
            agent("score"),
        ],
    });
    check(&document, &[]);
    check(&json!({ "steps": [] }), &[]);
}

#[test]
fn the_minimal_example_is_valid() {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["foo"],
        "properties": { "foo": { "type": "string" } },
    });
    let document = json!({
        "name": "agent-test", "version": 1,
        "steps": [
            { "id": "a", "kind": "exec", "shell": "echo pre" },
            {
                "id": "v", "kind": "agent", "prompt": "Return STRICT JSON {foo:string} only.",
                "input": { "x": 1 }, "schema": schema, "retries": 3,
            },
            { "id": "b", "kind": "exec", "shell": "echo post" },
        ],
    });
    check(&document, &[]);
}
