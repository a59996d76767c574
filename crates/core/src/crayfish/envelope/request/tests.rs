use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::crayfish::reading::tests::any_json;

#[test]
fn a_request_is_read_as_it_is_sent() {
    let workflow = json!({ "steps": [] });
    let request = CallRequest::parse(json!({
        "action": "run",
        "workflow": workflow,
        "vars": { "a": 1 },
        "agentOutputs": { "v": { "foo": "bar" } },
        "attempts": { "v": 1, "loop[0].x": 2.0 },
        "results": { "a": { "ok": true } },
        "runId": "r-1",
        "agentId": "musk",
        "ref": { "schemaPaths": ["schemas", "a/b"] },
    }));
    let object = |value: Value| value.as_object().cloned().unwrap();
    let expected = CallRequest {
        workflow: workflow.clone(),
        vars: object(json!({ "a": 1 })),
        agent_outputs: object(json!({ "v": { "foo": "bar" } })),
        unread: BTreeMap::new(),
        attempts: BTreeMap::from([("v".to_owned(), 1), ("loop[0].x".to_owned(), 2)]),
        results: object(json!({ "a": { "ok": true } })),
        run: Some(RunId::from("r-1")),
        agent: Some("musk".to_owned()),
        schema_paths: vec!["schemas".to_owned(), "a/b".to_owned()],
    };
    assert_eq!(request, Ok(expected));
    let least = CallRequest::parse(json!({ "workflow": workflow })).unwrap();
    assert_eq!(
        (least.workflow, least.run, least.attempts.len()),
        (json!({ "steps": [] }), None, 0)
    );
}

#[test]
fn every_problem_of_a_request_is_reported() {
    let check = |request: Value, expected: &[(&str, &str)]| {
        let problems = CallRequest::parse(request).unwrap_err();
        let messages =
            problems.iter().map(|problem| (problem.path.as_str(), problem.message.as_str()));
        assert_eq!(messages.collect::<Vec<_>>(), expected);
    };
    check(json!([]), &[("", "a request is an object, not an array")]);
    let many = json!({ "workflow": {}, "ref": { "schemaPaths": vec!["."; 101] } });
    check(many, &[("/ref/schemaPaths", "there may be 100 of them, not 101")]);
    let most = json!({ "workflow": {}, "ref": { "schemaPaths": vec!["."; 100] } });
    assert_eq!(CallRequest::parse(most).unwrap().schema_paths, vec!["."; 100]);
    check(json!({}), &[("", "a request needs the key `workflow`")]);
    let mut all = json!({
        "action": "walk", "workflow": [], "vars": null, "agentOutputs": 1, "attempts": "x",
        "results": true, "runId": 5, "agentId": {}, "ref": [], "agentOutput": {},
    });
    check(
        all.clone(),
        &[
            ("/agentOutput", "a request has no key `agentOutput`"),
            ("/action", "must be `run`, not `walk`"),
            ("/workflow", "an object is expected, not an array"),
            ("/vars", "an object is expected, not null"),
            ("/agentOutputs", "an object is expected, not a number"),
            ("/attempts", "an object is expected, not a string"),
            ("/results", "an object is expected, not a boolean"),
            ("/runId", "a string is expected, not a number"),
            ("/agentId", "a string is expected, not an object"),
            ("/ref", "`ref` is an object, not an array"),
        ],
    );
    all = json!({
        "workflow": {},
        "attempts": { "a": 0, "b": 1.5, "c": "1", "d/e": -1, "ok": 9 },
        "results": { "a": { "ok": false }, "b": 5 },
        "runId": "a/b",
        "ref": { "schemaPath": [], "schemaPaths": ["", "/etc", "a/../../b", 5, "..", "a..b"] },
    });
    let whole = "a whole number from 1 to 4294967295 is expected, not";
    check(
        all,
        &[
            ("/attempts/a", &format!("{whole} 0")),
            ("/attempts/b", &format!("{whole} 1.5")),
            ("/attempts/c", &format!("{whole} a string")),
            ("/attempts/d~1e", &format!("{whole} -1")),
            ("/results/b", "the result of a step, an object, is expected, not a number"),
            ("/runId", "a run id has letters, digits, `-` and `_` only, not '/'"),
            ("/ref/schemaPath", "`ref` has no key `schemaPath`"),
            ("/ref/schemaPaths/0", "a path cannot be empty"),
            (
                "/ref/schemaPaths/1",
                "a path must be relative to the workspace, without a leading `/`",
            ),
            ("/ref/schemaPaths/2", "a path must stay inside the workspace, without `..`"),
            ("/ref/schemaPaths/3", "a string is expected, not a number"),
            ("/ref/schemaPaths/4", "a path must stay inside the workspace, without `..`"),
        ],
    );
}

/// Returns a document with agent steps outside loops, in two loops, and other steps.
fn document() -> Document {
    let agent =
        |id: &str| json!({ "id": id, "kind": "agent", "prompt": "p", "schema": {}, "retries": 2 });
    let workflow = json!({ "vars": { "l": [] }, "steps": [
        { "id": "e", "kind": "exec", "shell": "x" },
        agent("verify"),
        { "id": "each", "kind": "forEach", "listPath": "$.vars.l", "itemVar": "i", "body": [
            { "id": "w", "kind": "while", "until": { "op": "exists", "path": "$.vars.x" }, "maxIters": 2, "body": [
                { "id": "gate", "kind": "if", "cond": { "op": "exists", "path": "$.vars.x" }, "then": [agent("inner")] },
            ] },
        ] },
    ] });
    Document::parse(&workflow).unwrap()
}

#[test]
fn an_output_must_be_for_an_agent_step() {
    let document = document();
    let unasked = |run: Option<&str>, name: &str| {
        let mut request = json!({ "workflow": {}, "agentOutputs": { name: {} } });
        if let Some(run) = run {
            request["runId"] = run.into();
        }
        let problems = CallRequest::parse(request).unwrap().unasked(&document);
        problems.into_iter().map(|problem| problem.to_string()).next().unwrap_or_default()
    };
    for name in
        ["verify", "inner", "each[7].w[1].inner", "verify:1", "verify:2", "each[7].w[1].inner:2"]
    {
        assert_eq!(unasked(None, name), "");
    }
    assert_eq!(unasked(Some("r"), "r:verify:1"), "");
    assert_eq!(unasked(Some("r"), "verify"), "");
    for name in [
        "e",
        "each",
        "gate",
        "nobody",
        "verify:0",
        "r:verify:1",
        "each[7].inner",
        "each[7].w[2].inner",
        "w[0].each[0].inner",
        "each[7].w[0].gate",
        "inner:1",
        "each[0].w[0].gate[0].inner",
        "",
    ] {
        let expected = format!("/agentOutputs/{name}: no agent step asks for `{name}`");
        let messages = unasked(None, name);
        assert_eq!(messages.split(';').next(), Some(expected.as_str()));
    }
    assert_eq!(
        unasked(Some("r"), "verify:1"),
        "/agentOutputs/verify:1: no agent step asks for `verify:1`; with a run it is `r:verify:1`"
    );
    assert_eq!(unasked(None, "verify:3"), "/agentOutputs/verify:3: `verify` has 2 attempts");
    assert_eq!(
        unasked(None, "verfy"),
        "/agentOutputs/verfy: no agent step asks for `verfy`; did you mean `verify`?"
    );
    assert_eq!(
        unasked(Some("r"), "verfy:1"),
        "/agentOutputs/verfy:1: no agent step asks for `verfy:1`; did you mean `verify`?"
    );
}

#[test]
fn attempts_must_be_of_steps_that_do_something() {
    let attempts = json!({
        "e": 1, "verify": 2, "inner": 1, "each[7].w[1].inner": 1, "gate": 1, "each[7].inner": 1, "verfy": 1,
    });
    let request = CallRequest::parse(json!({ "workflow": {}, "attempts": attempts })).unwrap();
    let messages: Vec<String> =
        request.unasked(&document()).iter().map(Problem::to_string).collect();
    let expected = [
        "/attempts/each[7].inner: no step has the key `each[7].inner`",
        "/attempts/gate: no step has the key `gate`",
        "/attempts/verfy: no step has the key `verfy`; did you mean `verify`?",
    ];
    assert_eq!(messages, expected);
}

proptest! {
    #[test]
    fn any_json_is_a_request_or_has_problems(value in any_json(), key in prop::sample::select(KEYS)) {
        if let Err(problems) = CallRequest::parse(json!({ "workflow": {}, key: value })) {
            prop_assert!(!problems.is_empty());
        }
    }
}
