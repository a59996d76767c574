//! Requests of the tool: what was read and is written again reads as the same.

use raymond_core::crayfish::reading::{self, Holds};
use raymond_core::crayfish::{CallRequest, Document};
use serde_json::{Value, json};

use super::document::check_problems;
use crate::Target;

/// A request of the tool `crayfish`.
pub const TARGET: Target = Target {
    name: "request",
    inputs: 4_000,
    words: &[
        "\"action\":\"run\",",
        "\"workflow\":{",
        "\"vars\":{",
        "\"agentOutputs\":{",
        "\"attempts\":{",
        "\"results\":{",
        "\"runId\":\"r-1\",",
        "\"agentId\":\"a\",",
        "\"ref\":{\"schemaPaths\":[\"s\"]}",
        "\"ask:1\":",
        "\"r-1:loop[2].ask:1\":",
        "\"loop[0].a\":{\"ok\":true,\"json\":1}",
        "\"ok\":true",
        "\"json\":",
        "../",
        "/etc",
        "[0]",
        "[18446744073709551616]",
        ":1",
        "\"steps\":[",
        "{\"id\":\"ask\",\"kind\":\"agent\",\"prompt\":\"p\",\"schema\":{}}",
        "null",
        "{}",
        "[]",
        "},{",
        "\\u0000",
        "1e999",
        "\"",
        "{\"",
        "\":",
    ],
    memory: Target::MEMORY,
    check,
};

fn check(bytes: &[u8]) {
    let Ok(value) = reading::read_as(Holds::Request, bytes) else { return };
    let request = match CallRequest::parse(value.clone()) {
        Ok(request) => request,
        Err(problems) => {
            assert_eq!(CallRequest::parse(value), Err(problems.clone()));
            return check_problems(&String::from_utf8_lossy(bytes), &problems);
        }
    };
    assert!(request.schema_paths.iter().all(|path| stays(path)), "{:?}", request.schema_paths);
    // By hand, because Raymond only reads requests; hosts write them.
    let written = written(&request).to_string();
    let again = reading::read_as(Holds::Request, written.as_bytes()).expect("what is printed");
    assert_eq!(CallRequest::parse(again).as_ref(), Ok(&request), "writing changes the request");
    if let Ok(document) = Document::parse(&request.workflow) {
        for problem in request.unasked(&document) {
            assert!(!problem.message.is_empty());
        }
    }
}

/// Nothing leads out of the workspace.
fn stays(path: &str) -> bool {
    !path.starts_with('/') && !path.split('/').any(|part| part == "..")
}

fn written(request: &CallRequest) -> Value {
    let mut value = json!({
        "action": "run",
        "workflow": request.workflow,
        "vars": request.vars,
        "agentOutputs": request.agent_outputs,
        "attempts": request.attempts,
        "results": request.results,
        "ref": { "schemaPaths": request.schema_paths },
    });
    if let Some(run) = &request.run {
        value["runId"] = run.to_string().into();
    }
    if let Some(agent) = &request.agent {
        value["agentId"] = agent.as_str().into();
    }
    value
}
