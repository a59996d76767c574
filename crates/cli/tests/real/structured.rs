//! Answers in JSON with a schema, and models that give none.

use raymond_backends::contract::{Answer, PromptRequest};
use raymond_core::budget::{Cost, Micros};
use raymond_core::run::outcome::{Finished, Reply};
use serde_json::{Value, json};

use crate::alone::Alone;

fn replied(alone: &Alone, prompt: &str, schema: Option<Value>) -> Finished<Reply> {
    let answer = alone.ask(PromptRequest { schema, ..alone.asking(prompt) });
    let Answer::Finished(reply) = answer else { panic!("{answer:#?}") };
    *reply
}

fn schema() -> Value {
    let properties =
        json!({ "grade": { "type": "integer", "minimum": 1 }, "why": { "type": "string" } });
    json!({ "type": "object", "properties": properties, "required": ["grade"] })
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn answer_that_fits_the_schema_is_json() {
    let alone = Alone::claude();
    let prompt = r#"model: tool StructuredOutput {"grade":0}
        model: tool StructuredOutput {"grade":3,"why":"ä \"quoted\""}
        model: say done"#;
    let reply = replied(&alone, prompt, Some(schema()));
    assert_eq!(reply.reply.structured, Some(json!({ "grade": 3, "why": "ä \"quoted\"" })));
    let requests = alone.stage.requests();
    assert!(requests[0].tools.contains(&"StructuredOutput".to_owned()), "{:?}", requests[0].tools);
    assert_eq!(reply.cost, Cost::Reported(Micros(alone.stage.billed())));
    alone.stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn answer_without_the_tool_has_no_json() {
    let alone = Alone::claude();
    let prompt = "model: say grade three\nmodel: then\nmodel: say three, in words";
    let reply = replied(&alone, prompt, Some(schema()));
    assert_eq!((reply.reply.structured, reply.reply.text), (None, "three, in words".to_owned()));
    assert_eq!(reply.cost, Cost::Reported(Micros(alone.stage.billed())));
    assert_eq!(alone.stage.requests().len(), 2, "the client insists once");
    alone.stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn five_invalid_answers_give_no_json() {
    let alone = Alone::claude();
    let prompt = ["model: tool StructuredOutput {\"grade\":0}"; 9].join("\n");
    let reply = replied(&alone, &prompt, Some(schema()));
    assert_eq!(reply.reply.structured, None);
    let failure = "Failed to provide valid structured output after 5 attempts";
    assert!(reply.reply.text.starts_with(failure), "{reply:?}");
    // The client gives up while the last answer still arrives, and may not count it.
    let billed = alone.stage.billed();
    let possible = [billed, billed / 5 * 4].map(|amount| Cost::Reported(Micros(amount)));
    assert!(possible.contains(&reply.cost), "{:?} of {billed}", reply.cost);
    assert_eq!(alone.stage.requests().len(), 5);
    alone.stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn unrequested_json_is_text() {
    let alone = Alone::claude();
    let reply = replied(&alone, r#"model: say {"grade":3}"#, None);
    assert_eq!((reply.reply.structured, reply.reply.text), (None, r#"{"grade":3}"#.to_owned()));
    let shown = &alone.stage.requests()[0].tools;
    assert!(!shown.contains(&"StructuredOutput".to_owned()), "{shown:?}");
}
