use serde_json::json;

use super::*;
use crate::crayfish::document::{Document, StepKind};

fn rendered(step: &Value) -> Result<Result<ExecCall, RenderedRequest>, String> {
    let env = json!({ "A": "{{vars.x}}", "B": "document" });
    let asks = |id: &str| json!({ "id": id, "kind": "agent", "prompt": "p", "schema": {} });
    let steps = json!([asks("r"), asks("skipped"), step]);
    let document = Document::parse(&json!({ "env": env, "steps": steps })).unwrap();
    let object = |value: Value| value.as_object().cloned().unwrap();
    let vars = object(json!({ "x": "hello", "n": 1 }));
    let results = object(json!({ "r": { "json": [2] } }));
    let visible = Visible { vars: &vars, results: &results, locals: &Map::new() };
    let message = |bad: Unrendered| bad.to_string();
    match &document.steps()[2].kind {
        StepKind::Exec(step) => exec(step, &document.env, &visible).map(Ok).map_err(message),
        StepKind::Agent(step) => agent(step, &visible).map(Err).map_err(message),
        other @ (StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_)) => {
            panic!("{other:?}")
        }
    }
}

#[test]
fn a_step_is_rendered_as_a_whole() {
    let env = |b: &str| BTreeMap::from([("A".into(), "hello".into()), ("B".into(), b.into())]);
    let shell = rendered(&json!({
        "id": "s", "kind": "exec", "shell": "echo {{vars.x}}", "env": { "B": "{{results.r.json}}" },
    }));
    let command = StepCommand::Shell("echo hello".into());
    let (io, timeout) = (CallIo::None, ExecStep::TIMEOUT);
    assert_eq!(shell, Ok(Ok(ExecCall { command, env: env("[2]"), io, timeout })));

    let cmd = rendered(&json!({
        "id": "s", "kind": "exec",
        "run": { "kind": "cmd", "cmd": "{{vars.x}}", "args": ["{{results.r.json[0]}}", "b"] },
        "timeoutMs": 7,
        "io": {
            "in": { "a": { "path": "in/{{vars.n}}.json", "schema": { "type": "array" } } },
            "out": { "b": { "path": "out" }, "c": { "path": "{{vars.x}}" } },
        },
    }));
    let command = StepCommand::Cmd { cmd: "hello".into(), args: vec!["2".into(), "b".into()] };
    let file = |name: &str, path: &str, schema: Option<Value>| CallFile {
        name: name.into(),
        path: path.into(),
        schema: schema.map(Arc::new),
    };
    let io = CallIo::File {
        inputs: vec![file("a", "in/1.json", Some(json!({ "type": "array" })))],
        outputs: vec![file("b", "out", None), file("c", "hello", None)],
    };
    assert_eq!(cmd, Ok(Ok(ExecCall { command, env: env("document"), io, timeout: Span(7) })));

    for (from, expected) in
        [(json!("r"), json!([2])), (json!({ "stepId": "r", "jsonPath": "$[0]" }), json!(2))]
    {
        let io = json!({ "mode": "stream", "inputFrom": from, "inputSchema": {} });
        let reads = rendered(&json!({ "id": "s", "kind": "exec", "shell": "x", "io": io }));
        let (input, input_schema) = (Some(expected), Some(Arc::new(json!({}))));
        let io = CallIo::Stream { input, input_schema, output_schema: None };
        assert_eq!(reads.unwrap().unwrap().io, io);
    }

    let asked = rendered(&json!({
        "id": "s", "kind": "agent", "prompt": "do {{vars.n}}", "input": ["{{vars.n}}"], "schema": true,
    }));
    assert_eq!(asked, Ok(Err(RenderedRequest { prompt: "do 1".into(), input: Some(json!([1])) })));
}

#[test]
fn null_for_stdin_is_not_an_empty_stdin() {
    let stream = |input| CallIo::Stream { input, input_schema: None, output_schema: None };
    for io in [stream(Some(Value::Null)), stream(Some(json!(1))), stream(None)] {
        let text = serde_json::to_string(&io).unwrap();
        assert_eq!(serde_json::from_str::<CallIo>(&text).unwrap(), io, "{text}");
    }
}

#[test]
fn a_fault_names_its_place_and_its_expression() {
    let check = |step: Value, expected: &str| {
        assert_eq!(rendered(&step), Err(expected.to_owned()));
    };
    let no_value = "`{{vars.no}}` has no value here";
    check(
        json!({ "id": "s", "kind": "exec", "shell": "{{vars.no}}" }),
        &format!("at /shell: {no_value}"),
    );
    check(
        json!({ "id": "s", "kind": "exec", "run": { "kind": "cmd", "cmd": "a", "args": ["b", "{{vars.no}}"] } }),
        &format!("at /run/args/1: {no_value}"),
    );
    check(
        json!({ "id": "s", "kind": "exec", "shell": "a", "env": { "A/B": "{{vars.no}}" } }),
        &format!("at /env/A~1B: {no_value}"),
    );
    check(
        json!({ "id": "s", "kind": "exec", "shell": "a", "io": { "out": { "o": { "path": "{{vars.no}}" } } } }),
        &format!("at /io/out/o/path: {no_value}"),
    );
    check(
        json!({ "id": "s", "kind": "agent", "prompt": "p", "input": { "a": ["{{vars.no}}"] }, "schema": {} }),
        &format!("at /input: {no_value}"),
    );
    let reads = |from: Value| {
        let io = json!({ "mode": "stream", "inputFrom": from });
        json!({ "id": "s", "kind": "exec", "shell": "a", "io": io })
    };
    check(reads(json!("skipped")), "at /io/inputFrom: the step skipped was not done");
    check(
        reads(json!({ "stepId": "r", "jsonPath": "$[1]" })),
        "at /io/inputFrom: r left no `json` that has a value at `$[1]`",
    );
}

#[test]
fn a_fault_is_pointed_to_from_the_document() {
    let check = |env: Value, shell: &str, expected: &str| {
        let steps = json!([{ "id": "s", "kind": "exec", "shell": shell }]);
        let document = Document::parse(&json!({ "env": env, "steps": steps })).unwrap();
        let StepKind::Exec(step) = &document.steps()[0].kind else { panic!("it is an exec step") };
        let nothing = Map::new();
        let visible = Visible { vars: &nothing, results: &nothing, locals: &nothing };
        let bad = exec(step, &document.env, &visible).unwrap_err().of_document("/steps/0");
        assert_eq!(bad.at, expected);
        assert_eq!(bad.clone().of_document("/steps/0"), bad);
    };
    check(json!({}), "{{vars.no}}", "/steps/0/shell");
    check(json!({ "A": "{{vars.no}}" }), "true", "/env/A");
}

#[test]
fn nul_bytes_are_found() {
    let shell = |text: &str| StepCommand::Shell(text.to_owned());
    let cmd = |cmd: &str, args: &[&str]| {
        let args = args.iter().map(|&argument| argument.to_owned()).collect();
        StepCommand::Cmd { cmd: cmd.to_owned(), args }
    };
    let check = |command: &StepCommand, value: &str, expected: Option<&str>| {
        let env = [("A", "a"), ("B/C", value)].map(|(name, value)| (name.into(), value.into()));
        let (command, io) = (command.clone(), CallIo::None);
        let call = ExecCall { command, env: env.into(), io, timeout: ExecStep::TIMEOUT };
        assert_eq!(call.nul().as_deref(), expected, "{call:?}");
    };
    check(&shell("a"), "b", None);
    check(&shell("a\0"), "b\0", Some("/shell"));
    check(&shell("a"), "b\0", Some("/env/B~1C"));
    check(&cmd("a", &["b", "c"]), "d", None);
    check(&cmd("a\0", &["b\0"]), "c\0", Some("/run/cmd"));
    check(&cmd("a", &["b", "\0c"]), "d\0", Some("/run/args/1"));
    check(&cmd("a", &["b", "c"]), "d\0", Some("/env/B~1C"));
}
