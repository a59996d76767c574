//! The real client passes the test suite of all backends.

use raymond_backends::conformance::{Situation, violations};
use raymond_backends::contract::{Answer, PromptRequest};
use serde_json::{Value, json};

use crate::alone::{Alone, finished};

/// The prompt that leads the model to each situation.
pub(crate) fn prompts(situation: Situation) -> &'static str {
    match situation {
        Situation::Replies | Situation::KnowsNoSession => "model: say hello",
        Situation::RepliesDifferently => "model: say something else",
        Situation::Complies => "model: say {\"a\":1}",
        Situation::NeverComplies => "model: say never",
        Situation::SpendsTooMuch => {
            "model: tool exec_command {\"cmd\": \"sleep 600\"}\nmodel: say never"
        }
        Situation::Hangs => "model: hang",
        Situation::Fails => "model: error 400",
        Situation::FailsTransiently => "model: error 500",
        Situation::IsOverQuota => "model: error 429 type=usage_limit_reached",
        Situation::IsLoggedOut => "model: error 401",
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn real_client_keeps_every_rule_of_backends() {
    let bench = Alone::codex();
    assert_eq!(finished(violations(&bench)), []);
    bench.stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn structured_output_has_any_json_shape() {
    let bench = Alone::codex();
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "number" } },
        "required": ["a"],
        "additionalProperties": false,
    });
    let check = |text: &str, expected: Option<Value>| {
        let request = bench.asking(&format!("model: say {text}"));
        let request = PromptRequest { schema: Some(schema.clone()), ..request };
        let Answer::Finished(reply) = bench.ask(request) else { panic!("it replied") };
        assert_eq!((reply.reply.text.as_str(), reply.reply.structured), (text, expected));
    };
    check(r#"{"a":1}"#, Some(json!({ "a": 1 })));
    check(r#"{"b":"another shape"}"#, Some(json!({ "b": "another shape" })));
    check("never", None);
    let formats: Vec<Value> = bench
        .stage
        .requests()
        .into_iter()
        .map(|mut seen| seen.body["text"]["format"].take())
        .collect();
    assert_eq!(formats.len(), 3);
    assert!(formats.iter().all(|format| format["schema"] == schema), "{formats:?}");
    bench.stage.leaves_nothing();
}
