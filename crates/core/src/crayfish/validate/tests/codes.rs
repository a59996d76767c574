//! Every sort of mistake has its own stable code and its pointer.

use super::*;
use crate::crayfish::envelope::CallRequest;
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::reading;

/// Returns pointer and code of the first problem.
fn first(problems: &[Problem]) -> Option<(&str, ProblemCode)> {
    problems.first().map(|problem| (problem.path.as_str(), problem.code))
}

/// Returns the problems of a text that should be a document.
fn text(text: &[u8]) -> Vec<Problem> {
    match reading::read(text) {
        Ok(document) => Document::parse(&document).err().unwrap_or_default(),
        Err(why) => vec![why.into()],
    }
}

#[test]
fn texts_that_are_not_documents() {
    let check = |document: &str, path: &str, code: ProblemCode| {
        assert_eq!(first(&text(document.as_bytes())), Some((path, code)), "{document:.80}");
    };
    check(r#"{"steps":[,]}"#, "/steps/0", ProblemCode::NotJson);
    check(r#"{"steps":[]} []"#, "", ProblemCode::NotJson);
    check(r#"{"steps":[],"vars":{"a":1,"a":2}}"#, "/vars/a", ProblemCode::DuplicateKey);
    check(r#"{"vars":{"a":1e999}}"#, "/vars/a", ProblemCode::OutOfRange);
    assert_eq!(first(&text(b"{\"name\":\"\xff\"}")), Some(("", ProblemCode::NotUtf8)));
    let deep = text("[".repeat(10_000).as_bytes());
    assert_eq!(deep.iter().map(|problem| problem.code).collect::<Vec<_>>(), [ProblemCode::TooDeep]);
    check("[]", "", ProblemCode::WrongType);
    check("{}", "", ProblemCode::MissingKey);
    check(r#"{"steps":[],"step":[]}"#, "/step", ProblemCode::UnknownKey);
    check(r#"{"steps":{}}"#, "/steps", ProblemCode::WrongType);
}

#[test]
fn mistakes_of_steps() {
    let check = |mut step: Value, path: &str, code: ProblemCode| {
        if step.get("id").is_none() {
            step["id"] = "s".into();
        }
        let problems = Document::parse(&json!({ "steps": [step] })).err().unwrap_or_default();
        let path = format!("/steps/0{path}");
        assert_eq!(first(&problems), Some((path.as_str(), code)), "{step}");
    };
    let run = |more: Value| {
        let mut step = json!({ "kind": "exec", "shell": "x" });
        step.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        step
    };
    check(json!({ "kind": "exce" }), "/kind", ProblemCode::UnknownKind);
    check(json!({ "kind": 5 }), "/kind", ProblemCode::WrongType);
    check(json!({}), "", ProblemCode::MissingKey);
    check(json!({ "kind": "exec" }), "", ProblemCode::MissingKey);
    check(run(json!({ "id": "a b" })), "/id", ProblemCode::BadId);
    check(run(json!({ "shel": "x" })), "/shel", ProblemCode::UnknownKey);
    check(run(json!({ "run": {} })), "", ProblemCode::ConflictingKeys);
    check(
        run(json!({ "io": { "outputSchema": {} } })),
        "/io/outputSchema",
        ProblemCode::ConflictingKeys,
    );
    check(run(json!({ "io": { "mode": "pipe" } })), "/io/mode", ProblemCode::UnknownWord);
    check(run(json!({ "retries": 6 })), "/retries", ProblemCode::OutOfRange);
    check(run(json!({ "retries": 1.5 })), "/retries", ProblemCode::OutOfRange);
    check(run(json!({ "retries": "2" })), "/retries", ProblemCode::WrongType);
    check(run(json!({ "env": { "A=B": "" } })), "/env/A=B", ProblemCode::BadName);
    check(run(json!({ "shell": "a\0" })), "/shell", ProblemCode::BadText);
    check(run(json!({ "shell": "{{vars}}" })), "/shell", ProblemCode::BadPath);
    check(run(json!({ "shell": "{{var.x}}" })), "/shell", ProblemCode::UnknownNamespace);
    check(run(json!({ "shell": "{{locals.x}}" })), "/shell", ProblemCode::UnknownLocal);
    check(run(json!({ "shell": "{{results.a.json}}" })), "/shell", ProblemCode::Injection);
    let file = |path: &str| run(json!({ "io": { "in": { "f": { "path": path } } } }));
    for path in ["", "/etc/passwd", "../x", "a/../../x"] {
        check(file(path), "/io/in/f/path", ProblemCode::EscapingPath);
    }
    let from = |step: &str| run(json!({ "io": { "mode": "stream", "inputFrom": step } }));
    check(from("nobody"), "/io/inputFrom", ProblemCode::UnknownStep);
    check(from("s"), "/io/inputFrom", ProblemCode::UnusableStep);
    let looks =
        |path: &str| json!({ "kind": "if", "cond": { "op": "exists", "path": path }, "then": [] });
    check(looks("vars.x"), "/cond/path", ProblemCode::BadPath);
    check(looks("$.x.y"), "/cond/path", ProblemCode::UnknownNamespace);
    check(looks("$.results.nobody.json"), "/cond/path", ProblemCode::UnknownStep);
    check(looks("$.results.s"), "/cond/path", ProblemCode::UnknownResult);
    check(each("s", "$.vars.l", "a b", &json!([])), "/itemVar", ProblemCode::BadName);
}

#[test]
fn mistakes_of_whole_documents() {
    let check = |document: &Value, path: &str, code: ProblemCode| {
        let problems = Document::parse(document).err().unwrap_or_default();
        assert_eq!(first(&problems), Some((path, code)));
    };
    check(&json!({ "steps": [exec("a"), exec("a")] }), "/steps/1/id", ProblemCode::DuplicateId);
    let nested = each("l", "$.vars.l", "i", &json!([exec("a")]));
    check(&json!({ "steps": [exec("a"), nested] }), "/steps/1/body/0/id", ProblemCode::DuplicateId);
    let early = json!({ "env": { "A": "{{results.a.json}}" }, "steps": [] });
    check(&early, "/env/A", ProblemCode::TooEarly);
    let many = json!({ "steps": vec![0; STEPS + 1] });
    check(&many, "/steps", ProblemCode::TooManySteps);
    let problems = Document::parse(&many).err().unwrap_or_default();
    assert_eq!(problems.last().map(|problem| problem.code), Some(ProblemCode::MoreProblems));
    let mut deep = exec("last");
    for level in 0..NESTING {
        deep = each(&format!("s{level}"), "$.vars.l", "i", &json!([deep]));
    }
    let problems = Document::parse(&json!({ "steps": [deep] })).err().unwrap_or_default();
    assert_eq!(problems.iter().map(|p| p.code).collect::<Vec<_>>(), [ProblemCode::TooDeep]);
}

#[test]
fn mistakes_of_requests() {
    let check = |mut request: Value, path: &str, code: ProblemCode| {
        request["workflow"] = json!({});
        let problems = CallRequest::parse(request.clone()).err().unwrap_or_default();
        assert_eq!(first(&problems), Some((path, code)), "{request}");
    };
    check(json!({ "attempts": { "a": 0 } }), "/attempts/a", ProblemCode::OutOfRange);
    check(json!({ "attempts": { "a": "1" } }), "/attempts/a", ProblemCode::WrongType);
    check(json!({ "results": { "a": 5 } }), "/results/a", ProblemCode::WrongType);
    check(json!({ "runId": "a/b" }), "/runId", ProblemCode::BadId);
    check(json!({ "action": "walk" }), "/action", ProblemCode::UnknownWord);
    check(json!({ "agentOutput": {} }), "/agentOutput", ProblemCode::UnknownKey);
    let paths = json!({ "ref": { "schemaPaths": ["../x"] } });
    check(paths, "/ref/schemaPaths/0", ProblemCode::EscapingPath);
    let document = Document::parse(&json!({ "steps": [agent("v")] })).unwrap();
    let request = json!({ "workflow": {}, "agentOutputs": { "w": {} } });
    let unasked = CallRequest::parse(request).unwrap().unasked(&document);
    assert_eq!(first(&unasked), Some(("/agentOutputs/w", ProblemCode::UnaskedOutput)));
}
