//! Rounds: the clients that get them, their answers, and their handles.

use serde_json::{Value as Json, json};

use super::client::{Client, Era};
use super::fake::Fake;
use crate::ASKS;

fn flat() -> Json {
    json!({ "type": "object", "properties": { "foo": { "type": "string" } }, "required": ["foo"] })
}

/// Returns a call that asks for rounds.
fn asking(schema: &Json) -> Json {
    json!({
        "name": "crayfish",
        "arguments": { "workflow": { "name": "ask", "schema": schema } },
        "_meta": { ASKS: true },
    })
}

/// Returns a call with answers.
fn answering(schema: &Json, state: &Json, responses: &Json) -> Json {
    let mut params = asking(schema);
    params["requestState"] = state.clone();
    params["inputResponses"] = responses.clone();
    params
}

fn said(text: &str) -> Json {
    json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": text } })
}

#[tokio::test]
async fn model_is_asked_until_output_is_valid() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    let mut client = Client::connect(&host, Era::Modern, json!({ "sampling": {} })).await;
    let first = client.ask("tools/call", asking(&json!({}))).await["result"].clone();
    assert_eq!(first["resultType"], "input_required");
    let run = first["_meta"]["raymond/runId"].as_str().unwrap().to_owned();
    let asked = &first["inputRequests"][format!("{run}:v:1")];
    assert_eq!(asked["method"], "sampling/createMessage");
    let text = asked["params"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("\"instructions\": \"say foo\""), "{text}");
    assert!(!text.contains("retryContext\": {"), "{text}");

    let responses = json!({ format!("{run}:v:1"): said("{\"foo\": 1}"), "other:v:1": said("{}") });
    let params = answering(&json!({}), &first["requestState"], &responses);
    let second = client.ask("tools/call", params).await["result"].clone();
    assert_eq!(second["resultType"], "input_required");
    assert_eq!(host.last()["runId"], run);
    assert_eq!(host.last()["agentOutputs"], json!({ format!("{run}:v:1"): { "foo": 1 } }));
    let asked = &second["inputRequests"][format!("{run}:v:2")];
    let text = asked["params"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("/foo: is missing"), "{text}");

    let responses = json!({ format!("{run}:v:2"): said("{\"foo\": \"bar\"}") });
    let params = answering(&json!({}), &second["requestState"], &responses);
    let third = client.ask("tools/call", params).await["result"].clone();
    assert_eq!(third["resultType"], "complete");
    assert_eq!(third["structuredContent"]["status"], "done");
    assert_eq!(third["structuredContent"]["runId"], run);
    assert_eq!(client.close().await, Ok(()));
}

#[tokio::test]
async fn form_is_shown_if_the_schema_is_one() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    let capabilities = json!({ "elicitation": { "form": {} } });
    let mut client = Client::connect(&host, Era::Modern, capabilities).await;
    let first = client.ask("tools/call", asking(&flat())).await["result"].clone();
    let run = first["_meta"]["raymond/runId"].as_str().unwrap().to_owned();
    let asked = &first["inputRequests"][format!("{run}:v:1")];
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["requestedSchema"], flat());

    let decline = json!({ format!("{run}:v:1"): { "action": "decline" } });
    let params = answering(&flat(), &first["requestState"], &decline);
    let declined = client.ask("tools/call", params).await["result"].clone();
    assert_eq!(declined["structuredContent"]["status"], "needs_agent");
    assert_eq!(declined["structuredContent"]["runId"], run);

    let accept = json!({ format!("{run}:v:1"): { "action": "accept", "content": { "foo": "x" } } });
    let params = answering(&flat(), &first["requestState"], &accept);
    let accepted = client.ask("tools/call", params).await["result"].clone();
    assert_eq!(accepted["structuredContent"]["status"], "done");

    let nested = json!({ "type": "object", "properties": { "foo": { "type": "object" } } });
    let other = client.ask("tools/call", asking(&nested)).await["result"].clone();
    assert_eq!(other["structuredContent"]["status"], "needs_agent");
    assert_eq!(client.close().await, Ok(()));
}

#[tokio::test]
async fn rounds_need_a_capable_client_that_asked() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    let can = json!({ "sampling": {} });
    for (era, capabilities, flag) in [
        (Era::Modern, &can, Json::Null),
        (Era::Modern, &can, json!("true")),
        (Era::Modern, &can, json!(false)),
        (Era::Modern, &json!({}), json!(true)),
        (Era::Legacy, &can, json!(true)),
    ] {
        let mut client = Client::connect(&host, era, capabilities.clone()).await;
        let mut params = asking(&json!({}));
        params["_meta"][ASKS] = flag;
        let result = client.ask("tools/call", params).await["result"].clone();
        assert_eq!(result["structuredContent"]["status"], "needs_agent", "{era:?} {result}");
        assert_eq!(result["structuredContent"]["requests"][0]["requestId"], "v:1");
        assert_eq!(host.last().get("runId"), None);
        assert_eq!(client.close().await, Ok(()));
    }
}

#[tokio::test]
async fn named_run_is_kept_and_wrong_handle_refused() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    let mut client = Client::connect(&host, Era::Modern, json!({ "sampling": {} })).await;
    let mut params = asking(&json!({}));
    params["arguments"]["runId"] = json!("mine");
    params["arguments"]["agentOutputs"] = json!({ "old": 1 });
    params["arguments"]["attempts"] = json!({ "v": 1 });
    let first = client.ask("tools/call", params.clone()).await["result"].clone();
    assert_eq!(first["_meta"]["raymond/runId"], "mine");
    params["requestState"] = first["requestState"].clone();

    let refused = async |client: &mut Client, params: &Json, expected: &str| {
        let answer = client.ask("tools/call", params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    };
    let mut other = params.clone();
    other["arguments"]["workflow"]["name"] = json!("done");
    refused(&mut client, &other, "another workflow").await;
    let mut other = params.clone();
    other["arguments"]["runId"] = json!("yours");
    refused(&mut client, &other, "is of the run mine").await;
    let mut other = params.clone();
    other.as_object_mut().unwrap().remove("requestState");
    other["inputResponses"] = json!({ "mine:v:1": { "action": "decline" } });
    refused(&mut client, &other, "need the requestState").await;
    let mut forged = params.clone();
    let state = first["requestState"].as_str().unwrap();
    forged["requestState"] = json!(state.replacen('.', ".A", 1));
    refused(&mut client, &forged, "not given out here").await;

    // Without an answer, the same request is repeated.
    let again = client.ask("tools/call", params.clone()).await["result"].clone();
    assert_eq!(again["inputRequests"], first["inputRequests"]);
    assert_eq!(host.last()["agentOutputs"], json!({ "old": 1 }), "it may be for a later step");
    assert_eq!(host.last().get("attempts"), None);

    std::fs::remove_dir_all(home.path().join(".raymond/runs/mine")).unwrap();
    refused(&mut client, &params, "stale").await;
    assert_eq!(client.close().await, Ok(()));
}
