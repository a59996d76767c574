//! Lists, prompts, records and invalid requests.

use serde_json::{Value as Json, json};

use super::client::{Client, ERAS, Era};
use super::fake::Fake;

/// Returns whether a part of a schema is nullable or has several types.
fn unions(schema: &Json, at: &str) -> Vec<String> {
    match schema {
        Json::Object(fields) => {
            let here = fields.get("type").filter(|kind| !kind.is_string() && !kind.is_object());
            let here = here.map(|_| at.to_owned());
            let below =
                fields.iter().flat_map(|(name, below)| unions(below, &format!("{at}/{name}")));
            here.into_iter().chain(below).collect()
        }
        Json::Array(items) => items.iter().flat_map(|item| unions(item, at)).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn tool_schemas_suit_every_client() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let mut client = Client::connect(&Fake::new(home.path()), era, json!({})).await;
        let listed = client.ask("tools/list", json!({})).await;
        let [tool] = listed["result"]["tools"].as_array().unwrap().as_slice() else {
            panic!("{listed}");
        };
        assert_eq!(tool["name"], "crayfish");
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["inputSchema"]["required"], json!(["workflow"]));
        assert_eq!(unions(&tool["inputSchema"], ""), Vec::<String>::new());
        assert_eq!(tool["outputSchema"]["type"], "object");
        assert_eq!(unions(&tool["outputSchema"], ""), Vec::<String>::new());
        assert_eq!(tool["annotations"]["readOnlyHint"], false);
        assert_eq!(tool["annotations"]["destructiveHint"], true);
        assert_eq!(client.close().await, Ok(()));
    }
}

#[tokio::test]
async fn unknown_method_is_a_protocol_error() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let mut client = Client::connect(&Fake::new(home.path()), era, json!({})).await;
        let missing = if era == Era::Modern { -32602 } else { -32002 };
        for (method, params, code) in [
            ("tools/call", json!({ "name": "lobster" }), -32602),
            ("tools/list", json!({ "cursor": "2" }), -32602),
            ("resources/list", json!({ "cursor": "/" }), -32602),
            ("resources/read", json!({ "uri": "raymond://runs/none" }), missing),
            ("resources/read", json!({ "uri": "file:///etc/passwd" }), missing),
            ("resources/read", json!({ "uri": "raymond://runs/../x" }), missing),
            ("prompts/get", json!({ "name": "none" }), -32602),
            ("prompts/get", json!({ "name": "crayfish", "arguments": { "a": "b" } }), -32602),
            ("no/such/method", json!({}), -32601),
        ] {
            let answer = client.ask(method, params.clone()).await;
            assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        }
        assert_eq!(client.close().await, Ok(()));
    }
}

#[tokio::test]
async fn the_prompt_teaches_and_holds_the_task() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let mut client = Client::connect(&Fake::new(home.path()), era, json!({})).await;
        let listed = client.ask("prompts/list", json!({})).await;
        assert_eq!(listed["result"]["prompts"][0]["name"], "crayfish");
        let plain = client.ask("prompts/get", json!({ "name": "crayfish" })).await;
        let text = plain["result"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.starts_with("# ") && !text.contains("wanted now"), "{text}");
        let params = json!({ "name": "crayfish", "arguments": { "task": "count sheep" } });
        let asked = client.ask("prompts/get", params).await;
        let asked = asked["result"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert_eq!(asked, format!("{text}\n## What is wanted now\n\ncount sheep\n"));
        assert_eq!(client.close().await, Ok(()));
    }
}

#[tokio::test]
async fn records_are_listed_in_pages_and_read() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    (0..120).for_each(|n| host.keep(&format!("run-{n:03}")));
    for era in ERAS {
        let mut client = Client::connect(&host, era, json!({})).await;
        let (mut uris, mut cursor) = (Vec::new(), None);
        for expected in [50, 50, 20] {
            let params =
                cursor.map_or_else(|| json!({}), |cursor: Json| json!({ "cursor": cursor }));
            let page = client.ask("resources/list", params).await["result"].clone();
            let listed = page["resources"].as_array().unwrap().clone();
            assert_eq!(listed.len(), expected);
            uris.extend(listed.iter().map(|one| one["uri"].as_str().unwrap().to_owned()));
            cursor = page.get("nextCursor").cloned();
        }
        assert_eq!(cursor, None);
        assert_eq!(
            uris,
            (0..120).map(|n| format!("raymond://runs/run-{n:03}")).collect::<Vec<_>>()
        );
        let read = client.ask("resources/read", json!({ "uri": uris[7] })).await;
        let content = &read["result"]["contents"][0];
        assert_eq!(content["mimeType"], "application/json");
        let record: Json = serde_json::from_str(content["text"].as_str().unwrap()).unwrap();
        assert_eq!(record, json!({ "run_id": "run-007", "status": "completed" }));
        assert_eq!(client.close().await, Ok(()));
    }
}

// proves: S42
#[tokio::test]
async fn invalid_line_is_answered_without_harm() {
    let home = tempfile::tempdir().unwrap();
    let mut client = Client::connect(&Fake::new(home.path()), Era::Legacy, json!({})).await;
    let deep = format!(r#"{{"id":9,"a":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    for (line, code, id) in [
        ("nonsense", -32700, Json::Null),
        (r#"{"id":7,"id2":1,"id2":2}"#, -32700, json!(7)),
        (&deep, -32700, json!(9)),
        (r#"{"id":"x","jsonrpc":"2.0"}"#, -32600, json!("x")),
        ("[]", -32600, Json::Null),
        (r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":1}}"#, -32602, json!(3)),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"crayfish","arguments":[1]}}"#,
            -32602,
            json!(4),
        ),
    ] {
        client.write(line).await;
        let answer = client.receive().await;
        let line: String = line.chars().take(60).collect();
        assert_eq!(
            (&answer["error"]["code"], answer.get("id").unwrap_or(&Json::Null)),
            (&json!(code), &id),
            "{line}: {answer}"
        );
    }
    client.write("").await;
    assert_eq!(client.call(json!({ "workflow": { "name": "done" } })).await["isError"], false);
    assert_eq!(client.close().await, Ok(()));
}
