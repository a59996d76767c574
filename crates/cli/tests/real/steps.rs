//! Documents of steps whose agent steps real clients answer.

use serde_json::{Value, json};

use crate::stage::{RUN, Stage};

/// A document with one agent step between two programs, and the script of its model.
fn stage(script: &[&str], more: &Value) -> Stage {
    let stage = Stage::new();
    let mut asks = json!({
        "id": "v", "kind": "agent", "prompt": script.join("\n"), "input": { "x": 1 },
        "schema": {
            "type": "object", "additionalProperties": false, "required": ["foo"],
            "properties": { "foo": { "type": "string", "minLength": 2 } },
        },
    });
    asks.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let post = json!({
        "id": "b", "kind": "exec", "env": { "FOO": "{{results.v.json.foo}}" },
        "shell": "printf %s \"$FOO\" > foo",
    });
    let steps = json!([{ "id": "a", "kind": "exec", "shell": "echo pre >> log" }, asks, post]);
    stage.project.write("flow.json", json!({ "name": "w", "steps": steps }).to_string());
    stage
}

fn run(stage: &Stage, flags: &str) {
    stage.raymond(&format!("run flow.json --run-id {RUN} {flags}")).mentions(0, &[]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn claude_answers_an_agent_step_with_structured_output() {
    let script = ["model: tool StructuredOutput {\"foo\":\"bar\"}", "model: say done"];
    let stage = stage(&script, &json!({}));
    run(&stage, "--backend claude");
    assert_eq!(stage.project.read("foo"), "bar");
    let requests = stage.requests();
    assert!(requests[0].tools.contains(&"StructuredOutput".to_owned()), "{:?}", requests[0].tools);
    let said = &requests[0].conversation.last().unwrap().text;
    for part in ["\"outputSchema\"", "\"stepId\": \"v\"", "\"x\": 1", "STRICT JSON only"] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn claude_corrects_its_answer_in_the_conversation() {
    let script = [
        "model: say I would rather not",
        "model: then",
        "model: say no",
        "model: again",
        "model: tool StructuredOutput {\"foo\":\"bar\"}",
        "model: say done",
    ];
    let stage = stage(&script, &json!({ "retries": 2 }));
    run(&stage, "--backend claude");
    assert_eq!(stage.project.read("foo"), "bar");
    let last = stage.requests().into_iter().rev().find(|seen| {
        let said = seen.conversation.last().map(|said| said.text.clone()).unwrap_or_default();
        said.contains("\"attempt\": 2")
    });
    let shown = last.expect("the second attempt was asked for").conversation;
    let text: Vec<&str> = shown.iter().map(|said| said.text.as_str()).collect();
    assert!(text.iter().any(|text| text.contains("\"attempt\": 1")), "one conversation: {text:#?}");
    assert!(text.last().unwrap().contains("validationErrors"), "{text:#?}");
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn steps_share_a_claude_conversation() {
    let stage = Stage::new();
    let asks = |id: &str, session: Value| {
        let prompt =
            format!("step {id}\nmodel: tool StructuredOutput {{\"n\":1}}\nmodel: say done");
        json!({
            "id": id, "kind": "agent", "prompt": prompt, "session": session,
            "schema": { "type": "object", "required": ["n"] },
        })
    };
    let sticky = || json!({ "mode": "sticky", "label": "l" });
    let reset = json!({ "mode": "sticky", "label": "l", "reset": true });
    let steps = [asks("one", sticky()), asks("two", sticky()), asks("three", reset)];
    stage.project.write("flow.json", json!({ "steps": steps }).to_string());
    run(&stage, "--backend claude");
    let plans: Vec<String> = stage.events("turn_started").iter().map(kind).collect();
    assert_eq!(plans, ["fresh", "resume", "fresh"]);
    stage.leaves_nothing();
}

fn kind(started: &Value) -> String {
    started["plan"].as_object().unwrap().keys().next().unwrap().clone()
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn codex_answers_an_agent_step_by_its_schema() {
    let script = ["model: say {\"foo\":\"x\"}", "model: again", "model: say {\"foo\":\"bar\"}"];
    let stage = stage(&script, &json!({ "retries": 2 }));
    run(&stage, "--backend codex");
    assert_eq!(stage.project.read("foo"), "bar");
    assert_eq!(stage.requests().len(), 2);
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn killed_owner_never_pays_an_answer_twice() {
    let script = ["model: tool StructuredOutput {\"foo\":\"bar\"}", "model: say done"];
    let stage = stage(&script, &json!({}));
    let slow =
        stage.project.read("flow.json").replace("printf", "test -e go || kill -9 $PPID; printf");
    stage.project.write("flow.json", &slow);
    let killed = stage.start(&format!("run flow.json --run-id {RUN} --backend claude")).wait();
    assert_ne!(killed.code(), 0, "{killed:?}");
    let asked = stage.requests().len();
    stage.project.write("go", "");
    stage.raymond(&format!("resume {RUN}")).mentions(0, &[]);
    assert_eq!(stage.project.read("foo"), "bar");
    assert_eq!(stage.requests().len(), asked, "nothing is asked again");
    assert_eq!(stage.project.read("log"), "pre\n", "nothing is done again");
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}
