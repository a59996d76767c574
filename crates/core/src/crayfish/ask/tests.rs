use serde_json::Value;

use super::*;
use crate::decide::tests::play::Play;
use crate::decide::tests::steps::{call, exec, steps, wrong};
use crate::run::program::AnswerSource;

/// Returns the message for the model that answers a step.
fn message_for(play: &Play, key: &str) -> Option<String> {
    let (steps, state) =
        (play.definition.steps.as_ref().unwrap(), play.run.program.steps().unwrap());
    let request = steps.request(state, &AgentId::main(), &key.parse().unwrap())?;
    Some(message(&request))
}

#[test]
fn message_contains_the_whole_request() {
    let asks = json!({
        "id": "v", "kind": "agent", "prompt": "Judge {{vars.list[0]}}.", "input": "{{vars.list[1]}}",
        "schema": { "type": "number" }, "retries": 2,
    });
    let mut play = steps(AnswerSource::Caller, &json!([asks, exec("a")]));
    play.start();
    insta::assert_snapshot!(message_for(&play, "v").unwrap(), @r#"
    Answer the task below with one JSON value.
    - Output STRICT JSON only: no markdown, no explanation.
    - It MUST validate against `outputSchema`.
    - If `retryContext.validationErrors` is there, fix those errors first.

    {
      "input": 2,
      "instructions": "Judge 1.",
      "outputSchema": {
        "type": "number"
      },
      "task": {
        "attempt": 1,
        "maxAttempts": 2,
        "stepId": "v"
      }
    }
    "#);
    call(&mut play, &[], &[("v", wrong())]);
    let again = message_for(&play, "v").unwrap();
    let envelope: Value = serde_json::from_str(again.split_once("\n\n").unwrap().1).unwrap();
    assert_eq!(envelope["task"]["attempt"], 2);
    assert_eq!(envelope["retryContext"], json!({ "validationErrors": ["/a: no"] }));
    assert_eq!(message_for(&play, "a"), None, "a program is not asked");
}
