use serde_json::json;

use super::*;
use crate::crayfish::document::SessionMode;

fn reply(run: Option<&str>, outcome: CallOutcome) -> Value {
    let results = json!({ "a": { "ok": true } }).as_object().cloned().unwrap();
    let attempts = BTreeMap::from([("v".to_owned(), 2)]);
    CallReply { run: run.map(RunId::from), outcome, results, attempts, ignored: Vec::new() }
        .into_json()
}

fn done() -> CallOutcome {
    CallOutcome::Done { output: None }
}

#[test]
fn done_is_results_and_attempts() {
    let expected = json!({
        "ok": true, "status": "done", "results": { "a": { "ok": true } }, "attempts": { "v": 2 },
    });
    assert_eq!(reply(None, done()), expected);
    assert_eq!(reply(Some("r"), done())["runId"], "r");
    // Null is an output, too.
    for output in [json!([1]), Value::Null] {
        let reply = reply(None, CallOutcome::Done { output: Some(output.clone()) });
        assert_eq!(reply.get("output"), Some(&output));
    }
}

#[test]
fn request_contains_everything_needed_to_answer() {
    let plain = AgentRequest {
        run: None,
        key: "v".parse().unwrap(),
        prompt: "do it".to_owned(),
        input: None,
        schema: json!({ "type": "object" }).into(),
        attempt: 1,
        max_attempts: 3,
        assignee: None,
        session: None,
        settings: AgentSettings::default(),
        validation_errors: Vec::new(),
    };
    let full = AgentRequest {
        run: Some(RunId::from("r")),
        key: "loop[2].v".parse().unwrap(),
        input: Some(Value::Null),
        attempt: 2,
        assignee: Some("musk".to_owned()),
        session: Some(SessionChoice {
            mode: Some(SessionMode::Sticky),
            label: Some("wf:1:musk".to_owned()),
            reset: Some(false),
        }),
        settings: AgentSettings {
            model: Some("small".to_owned()),
            allow: vec!["Bash(wc:*)".to_owned()],
            budget: Some("0.25".parse().unwrap()),
        },
        validation_errors: vec![
            Problem::of_value("/foo", "is missing"),
            Problem::of_value("", "is empty"),
        ],
        ..plain.clone()
    };
    let sent = reply(Some("r"), CallOutcome::NeedsAgent(vec![plain, full]));
    let expected = json!({
        "ok": true,
        "status": "needs_agent",
        "runId": "r",
        "requests": [
            {
                "requestId": "v:1", "stepId": "v", "key": "v", "prompt": "do it",
                "schema": { "type": "object" }, "attempt": 1, "maxAttempts": 3,
            },
            {
                "requestId": "r:loop[2].v:2", "stepId": "v", "key": "loop[2].v", "prompt": "do it",
                "input": null, "schema": { "type": "object" }, "attempt": 2, "maxAttempts": 3,
                "assigneeAgentId": "musk",
                "session": { "mode": "sticky", "label": "wf:1:musk", "reset": false },
                "model": "small", "allow": ["Bash(wc:*)"], "budget": 0.25,
                "retryContext": { "validationErrors": ["/foo: is missing", "is empty"] },
            },
        ],
        "results": { "a": { "ok": true } },
        "attempts": { "v": 2 },
    });
    assert_eq!(sent, expected);
}

#[test]
fn a_failure_has_a_code_and_says_where() {
    let failure = CallFailure {
        code: ErrorCode::ExecFailed,
        message: "the program ended with 1".to_owned(),
        step: "a".parse().ok(),
        errors: vec![Problem::of_value("/x", "y")],
    };
    let expected = json!({
        "ok": false,
        "error": "exec_failed",
        "message": "the program ended with 1",
        "stepId": "a",
        "errors": [{ "path": "/x", "code": "invalid_output", "message": "y" }],
        "results": { "a": { "ok": true } },
        "attempts": { "v": 2 },
    });
    assert_eq!(reply(None, CallOutcome::Failed(failure)), expected);
    let early =
        CallReply::failed(ErrorCode::BadRequest, "the request is empty", Vec::new()).into_json();
    let expected = json!({
        "ok": false, "error": "bad_request", "message": "the request is empty",
        "results": {}, "attempts": {},
    });
    assert_eq!(early, expected);
}
