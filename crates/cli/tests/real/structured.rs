//! An answer in JSON that a schema describes, and a model that gives none.

use raymond_backends::contract::{Answer, Reply, Request};
use raymond_core::budget::{Cost, Micros};
use serde_json::{Value, json};

use crate::alone::Alone;

async fn replied(alone: &Alone, prompt: &str, schema: Option<Value>) -> Reply {
    let answer = alone.ask(Request { schema, ..alone.request(prompt) }).await;
    let Answer::Replied(reply) = answer else { panic!("{answer:#?}") };
    *reply
}

fn schema() -> Option<Value> {
    let properties = json!({ "grade": { "type": "integer", "minimum": 1 }, "why": { "type": "string" } });
    Some(json!({ "type": "object", "properties": properties, "required": ["grade"] }))
}

#[tokio::test]
#[ignore = "needs the real clients: cargo xtask test real"]
async fn a_model_that_complies_gives_its_answer_as_json() {
    let alone = Alone::new();
    let prompt = r#"model: tool StructuredOutput {"grade":0}
        model: tool StructuredOutput {"grade":3,"why":"ä \"quoted\""}
        model: say done"#;
    let reply = replied(&alone, prompt, schema()).await;
    assert_eq!(reply.structured, Some(json!({ "grade": 3, "why": "ä \"quoted\"" })));
    let requests = alone.stage.requests();
    assert!(requests[0].tools.contains(&"StructuredOutput".to_owned()), "{:?}", requests[0].tools);
    assert_eq!(reply.cost, Cost::Reported(Micros(alone.stage.billed())));
    alone.stage.leaves_nothing();
}

#[tokio::test]
#[ignore = "needs the real clients: cargo xtask test real"]
async fn a_model_that_never_complies_gives_a_reply_without_it() {
    let alone = Alone::new();
    let reply = replied(&alone, "model: say grade three, I would say", schema()).await;
    assert_eq!(reply.structured, None);
    assert_eq!(reply.text, "x");
    assert_eq!(reply.cost, Cost::Reported(Micros(alone.stage.billed())));
    let reply = replied(&alone, r#"model: say {"grade":3}"#, None).await;
    assert_eq!((reply.structured, reply.text), (None, r#"{"grade":3}"#.to_owned()));
    alone.stage.leaves_nothing();
}
