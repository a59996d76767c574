//! Clients over stdio that exceed the limits.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::client::{Client, ERAS, Era};
use super::fake::Fake;
use crate::calls::BUSY;
use crate::calls::{RUNNING, WAITING};
use crate::load::REQUESTS;

/// Starts a call that never ends by itself, with a progress token of its own.
async fn begin(client: &mut Client) -> u64 {
    let token = client.next_id();
    let params = json!({
        "name": "crayfish",
        "arguments": { "workflow": { "name": "wait" } },
        "_meta": { "progressToken": token },
    });
    client.request("tools/call", params).await
}

async fn cancel(client: &mut Client, id: u64) {
    let params = json!({ "requestId": id });
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
}

/// Waits until this call runs.
async fn expect_running(client: &mut Client, id: u64) {
    let message = client.receive().await;
    assert_eq!(message["params"]["progressToken"], id, "{message}");
}

async fn expect_refused(client: &mut Client, id: u64) {
    let message = client.receive().await;
    assert_eq!(
        (&message["id"], &message["error"]["code"]),
        (&json!(id), &json!(BUSY.0)),
        "{message}"
    );
}

// proves: A18, S44
#[tokio::test]
async fn calls_beyond_the_bound_are_refused() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let host = Fake::new(home.path());
        let mut client = Client::connect(&host, era, json!({})).await;
        let mut running = Vec::new();
        for _ in 0..RUNNING {
            running.push(begin(&mut client).await);
            expect_running(&mut client, running[running.len() - 1]).await;
        }
        let mut queue = Vec::new();
        for _ in 0..WAITING {
            queue.push(begin(&mut client).await);
        }
        let further = begin(&mut client).await;
        expect_refused(&mut client, further).await;
        assert_eq!(host.requests.lock().unwrap().len(), RUNNING);
        // A full server still answers other requests, and receives cancellations.
        assert!(client.ask("tools/list", json!({})).await["result"].is_object());
        cancel(&mut client, running[0]).await;
        expect_running(&mut client, queue[0]).await;
        cancel(&mut client, queue[1]).await;
        // Both have left the queue.
        for _ in 0..2 {
            begin(&mut client).await;
        }
        let further = begin(&mut client).await;
        expect_refused(&mut client, further).await;
        assert_eq!(client.close().await, Ok(()));
        assert_eq!(*host.given_up.lock().unwrap(), RUNNING + 1);
    }
}

/// Writes requests without reading until the server accepts no more; returns their number.
///
/// The clock is paused: it advances only when nothing else can happen.
async fn flood(client: &mut Client, method: &str, most: u64) -> u64 {
    let hour = std::time::Duration::from_hours(1);
    // More than all buffers in between contain.
    let params = json!({ "unknown": "x".repeat(8 << 10) });
    for sent in 0..most {
        let request = client.request(method, params.clone());
        if tokio::time::timeout(hour, request).await.is_err() {
            return sent;
        }
    }
    most
}

// proves: S44
#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_is_throttled() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let mut client = Client::connect(&Fake::new(home.path()), era, json!({})).await;
        let most = 2_000;
        let sent = flood(&mut client, "tools/list", most).await;
        assert!(sent < REQUESTS as u64 + 64, "{sent} requests were taken");
        // Once the client reads again, each request has an answer.
        for _ in 0..sent {
            let message = client.receive().await;
            assert!(message["result"].is_object() || message["error"].is_object(), "{message}");
        }
        drop(client);
    }
}

#[tokio::test]
async fn an_id_is_used_once_at_a_time() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    let mut client = Client::connect(&host, Era::Legacy, json!({})).await;
    let id = begin(&mut client).await;
    expect_running(&mut client, id).await;
    let again = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    client.send(&again).await;
    let refused = client.receive().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-32600)));
    cancel(&mut client, id).await;
    assert_eq!(client.close().await, Ok(()));
    assert_eq!(*host.given_up.lock().unwrap(), 1);
}

#[tokio::test]
async fn repeated_names_and_ids_are_shortened() {
    let home = tempfile::tempdir().unwrap();
    let host: Arc<Fake> = Fake::new(home.path());
    let mut client = Client::connect(&host, Era::Legacy, json!({})).await;
    let long = "\u{1}".repeat(1 << 16);
    let call =
        |name: &str, token: &str| json!({ "name": name, "_meta": { "progressToken": token } });
    for (id, method, params, expected) in [
        (json!(long), "ping", json!({}), -32600),
        (json!("1"), "tools/call", call("crayfish", &long), -32600),
        (json!("2"), "tools/call", call(&long, "a"), -32602),
        (json!("3"), &long, json!({}), -32601),
        (json!("4"), "resources/read", json!({ "uri": long }), -32002),
    ] {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        client.send(&message).await;
        let answer = client.receive().await;
        assert_eq!(answer["error"]["code"], expected, "{answer}");
        assert!(answer.to_string().len() < 4_000, "{answer}");
        let known = id.as_str().filter(|id| id.len() < 10);
        assert_eq!(answer["id"].as_str(), known, "{answer}");
    }
    assert_eq!(client.close().await, Ok(()));
}

// proves: S44
#[tokio::test]
async fn a_message_of_too_many_values_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut client = Client::connect(&Fake::new(home.path()), Era::Legacy, json!({})).await;
    let objects = "{},".repeat(1 << 20);
    for (head, id) in [(r#""id":3,"method":"ping""#, json!(3)), (r#""method":"x""#, Json::Null)] {
        client.write(&format!(r#"{{"jsonrpc":"2.0",{head},"a":[{objects}0]}}"#)).await;
        let answer = client.receive().await;
        let answered = (answer.get("id").unwrap_or(&Json::Null), &answer["error"]["code"]);
        assert_eq!(answered, (&id, &json!(-32600)), "{answer}");
    }
    assert_eq!(client.close().await, Ok(()));
}
