use serde_json::json;

use super::*;
use crate::crayfish::Call;
use crate::crayfish::document::AgentSettings;
use crate::crayfish::stored::Stored;
use crate::decide::tests::play::Play;
use crate::decide::tests::steps::{call, exec, fails, leaves, running, steps, valid, wrong};
use crate::run::Input;
use crate::run::program::AnswerSource;
use crate::run::stop::StopMode;

/// Returns the reply to the caller.
fn replied(play: &Play, id: Option<&str>) -> Json {
    let (id, steps) = (id.map(RunId::from), play.definition.steps.as_deref().unwrap());
    answer(play.run.clone(), steps, id.as_ref()).into_json()
}

fn asks(id: &str) -> Json {
    let schema = json!({ "type": "number" });
    json!({ "id": id, "kind": "agent", "prompt": "?", "schema": schema, "retries": 2 })
}

fn each(more: &Json, body: &Json) -> Json {
    let mut each = json!({
        "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x", "body": body,
    });
    each.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    each
}

#[test]
fn reply_has_results_by_key_and_id() {
    let mut play = steps(
        AnswerSource::Caller,
        &json!([exec("z"), each(&json!({}), &json!([exec("a"), asks("v")]))]),
    );
    let known = Stored::inline(json!({ "ok": true, "n": 9 }), true);
    let results = [("l[1].a".parse().unwrap(), known)].into();
    let brings = Input::Call(Box::new(Call { results, ..Call::default() }));
    let begin = play.begin();
    play.feed(vec![begin, brings]);
    leaves(&mut play, "main", &json!({ "ok": true, "n": 1 }));
    leaves(&mut play, "main", &json!({ "ok": true, "n": 2 }));
    let request = json!({
        "requestId": "l[0].v:1", "stepId": "v", "key": "l[0].v", "prompt": "?",
        "schema": { "type": "number" }, "attempt": 1, "maxAttempts": 2,
    });
    let expected = json!({
        "ok": true, "status": "needs_agent", "requests": [request],
        "results": {
            "z": { "ok": true, "n": 1 },
            "l[0].a": { "ok": true, "n": 2 }, "l[1].a": { "ok": true, "n": 9 },
            "a": { "ok": true, "n": 2 },
        },
        "attempts": { "l[0].v": 1 },
    });
    assert_eq!(replied(&play, None), expected);
    call(&mut play, &[], &[("v", valid())]);
    let reply = replied(&play, Some("r"));
    assert_eq!(reply["requests"][0]["requestId"], "r:l[1].v:1");
    assert_eq!(reply["results"]["a"], json!({ "ok": true, "n": 9 }));
    assert_eq!(reply["results"]["v"], json!({ "ok": true, "json": 1 }));
    assert_eq!(reply["attempts"], json!({ "l[0].v": 1, "l[1].v": 1 }));
}

#[test]
fn requests_are_in_the_order_of_keys() {
    let together = each(&json!({ "parallel": true }), &json!([asks("v")]));
    let mut play = steps(AnswerSource::Caller, &json!([together]));
    play.start();
    call(&mut play, &[], &[("l[1].v", wrong())]);
    let requests = replied(&play, Some("r"))["requests"].take();
    let told = |field: &str| -> Vec<Json> {
        requests.as_array().unwrap().iter().map(|request| request[field].clone()).collect()
    };
    assert_eq!(told("requestId"), ["r:l[0].v:1", "r:l[1].v:2", "r:l[2].v:1"]);
    let errors = json!({ "validationErrors": ["/a: no"] });
    assert_eq!(told("retryContext"), [json!(null), errors, json!(null)]);
}

#[test]
fn requests_are_limited_except_the_first() {
    let request = |key: &str| AgentRequest {
        run: None,
        key: key.parse().unwrap(),
        prompt: "seven..".to_owned(),
        input: Some(json!("three")),
        schema: json!("nine.....").into(),
        attempt: 1,
        max_attempts: 1,
        assignee: None,
        session: None,
        settings: AgentSettings::default(),
        validation_errors: Vec::new(),
    };
    // A text has quotes: 7 + 7 + 11 bytes each.
    for (most, expected) in [(0, 1), (49, 1), (50, 2), (74, 2), (75, 3), (1_000, 3)] {
        let told = fitting(["a", "b", "c"].map(request).into_iter(), most);
        assert_eq!(told, ["a", "b", "c"].map(request)[..expected], "{most}");
    }
    let bare = |key: &str| AgentRequest { input: None, ..request(key) };
    for (most, expected) in [(35, 1), (36, 2)] {
        assert_eq!(fitting(["a", "b"].map(bare).into_iter(), most).len(), expected);
    }
    assert_eq!(MOST_ASKED, 33_554_432, "half of what a request may hold");
}

#[test]
fn value_size_approximates_its_text() {
    for (value, expected) in [
        (json!(null), 8),
        (json!(true), 8),
        (json!(1), 8),
        (json!("abc"), 5),
        (json!([]), 2),
        (json!(["abc", 1]), 15),
        (json!({}), 2),
        (json!({ "ab": "abc", "c": ["d"] }), 2 + (2 + 4 + 5) + (1 + 4 + 5)),
    ] {
        assert_eq!(weight(&value), expected, "{value}");
    }
}

#[test]
fn echo_marks_collected_failures_as_exhausted() {
    let body = json!([exec("a"), asks("v")]);
    let together = each(&json!({ "parallel": true, "onError": "collect" }), &body);
    let mut play = steps(AnswerSource::Caller, &json!([together, asks("w")]));
    play.start();
    let agents = running(&play);
    leaves(&mut play, &agents[0], &json!({ "ok": true }));
    fails(&mut play, &agents[1]);
    fails(&mut play, &agents[1]);
    leaves(&mut play, &agents[2], &json!({ "ok": true }));
    let outputs = [("l[0].v:1", wrong()), ("l[0].v:2", wrong()), ("l[2].v", valid())];
    call(&mut play, &[], &outputs);
    call(&mut play, &[], &[("w:1", wrong()), ("w:2", wrong())]);
    let mut reply = replied(&play, None);
    assert_eq!(reply["attempts"].take(), json!({ "l[0].v": 3, "l[2].v": 1, "w": 2 }));
    // A run with a journal knows it.
    assert_eq!(replied(&play, Some("r"))["attempts"], json!({ "l[0].v": 2, "l[2].v": 1, "w": 2 }));
    reply["results"].take();
    let expected = json!({
        "ok": false, "error": "agent_output_schema_failed", "stepId": "w",
        "message": "no output of 2 was valid: /a: no",
        "errors": [{ "path": "/a", "code": "invalid_output", "message": "no" }],
        "results": null, "attempts": null,
    });
    assert_eq!(reply, expected);
}

#[test]
fn first_failure_by_key_is_reported() {
    let together = each(&json!({ "parallel": true }), &json!([exec("a")]));
    let mut play = steps(AnswerSource::Caller, &json!([together]));
    play.start();
    let agents = running(&play);
    for agent in [&agents[2], &agents[2], &agents[0], &agents[0]] {
        fails(&mut play, agent);
    }
    leaves(&mut play, &agents[1], &json!({ "ok": true }));
    let expected = json!({
        "ok": false, "error": "exec_failed", "stepId": "a", "message": "l[0].a: exit status 1",
        "results": {
            "l[0].a": { "ok": false }, "l[1].a": { "ok": true }, "l[2].a": { "ok": false },
            "a": { "ok": false },
        },
        "attempts": {},
    });
    assert_eq!(replied(&play, None), expected);
}

#[test]
fn cancelled_call_reports_whether_retry_is_possible() {
    let mut play = steps(AnswerSource::Caller, &json!([exec("a")]));
    play.start();
    let check = |play: &Play, message: &str| {
        let reply = replied(play, None);
        assert_eq!((&reply["error"], &reply["message"]), (&json!("cancelled"), &json!(message)));
    };
    check(&play, GIVEN_UP);
    play.halt();
    check(&play, GIVEN_UP);
    play.stop(StopMode::Cancel);
    check(&play, "the run was cancelled for good: name another `runId`");
}
