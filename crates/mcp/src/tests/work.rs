//! Calls: their replies, their progress, and their ends.

use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::client::{Client, ERAS, Era};
use super::fake::Fake;
use crate::calls::HEARTBEAT;

fn named(name: &str) -> Json {
    json!({ "workflow": { "name": name } })
}

#[tokio::test]
async fn reply_is_sent_as_data_and_text() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let mut client = Client::connect(&Fake::new(home.path()), era, json!({})).await;
        let done = json!({ "ok": true, "status": "done", "results": {}, "attempts": {} });
        let failed = json!({
            "ok": false,
            "error": "invalid_workflow",
            "message": "the document has problems",
            "errors": [{ "path": "/workflow", "code": "unknown_kind", "message": "Some(\"none\") is unknown" }],
            "results": {},
            "attempts": {},
        });
        for (name, expected, is_error) in [("done", done, false), ("none", failed, true)] {
            let result = client.call(named(name)).await;
            assert_eq!(result["structuredContent"], expected);
            let text = result["content"][0]["text"].as_str().unwrap();
            assert_eq!(serde_json::from_str::<Json>(text).unwrap(), expected);
            assert_eq!(result["isError"], is_error);
            let complete = (era == Era::Modern).then(|| json!("complete"));
            assert_eq!(result.get("resultType").cloned(), complete);
        }
        let lost = client.call(named("panic")).await;
        assert_eq!(lost["structuredContent"]["error"], "internal");
        assert_eq!(client.close().await, Ok(()));
    }
}

#[tokio::test]
async fn arguments_arrive_as_they_are_however_deep() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    for era in ERAS {
        let mut client = Client::connect(&host, era, json!({})).await;
        let deep = (0..900).fold(json!(1), |inner, _| json!([inner]));
        let arguments = json!({ "workflow": { "name": "done" }, "odd": null, "deep": deep });
        client.call(arguments.clone()).await;
        assert!(host.last() == arguments, "the request is another");
        let answer = client.ask("tools/call", json!({ "name": "crayfish" })).await;
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(host.last(), json!({}));
        assert_eq!(client.close().await, Ok(()));
    }
}

#[tokio::test]
async fn progress_grows_and_needs_a_token() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let mut client = Client::connect(&Fake::new(home.path()), era, json!({})).await;
        client.call(named("steps")).await;
        let params = json!({
            "name": "crayfish",
            "arguments": named("steps"),
            "_meta": { "progressToken": "p" },
        });
        let id = client.request("tools/call", params).await;
        let mut reports = Vec::new();
        let answer = loop {
            let message = client.receive().await;
            if message.get("id").is_some() {
                break message;
            }
            assert_eq!(message["method"], "notifications/progress");
            assert_eq!(message["params"]["progressToken"], "p");
            let progress = message["params"]["progress"].as_f64().unwrap();
            reports.push((progress, message["params"]["message"].as_str().unwrap().to_owned()));
        };
        assert_eq!(answer["id"], id);
        let expected = [1.0, 3.0, 4.0].map(|count| (count, format!("at {count}")));
        assert_eq!(reports, expected);
        assert_eq!(client.close().await, Ok(()));
    }
}

/// Starts a call that never ends by itself.
async fn waiting(client: &mut Client) -> u64 {
    let params = json!({
        "name": "crayfish",
        "arguments": named("wait"),
        "_meta": { "progressToken": 1 },
    });
    let id = client.request("tools/call", params).await;
    assert_eq!(client.receive().await["params"]["message"], "waits");
    id
}

#[tokio::test]
async fn cancelling_one_call_leaves_others_running() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let host = Fake::new(home.path());
        let mut client = Client::connect(&host, era, json!({})).await;
        let id = waiting(&mut client).await;
        let params = json!({ "requestId": id, "reason": "enough" });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        client.send(&cancel).await;
        // The next answer belongs to the next call, because a cancelled call has none.
        assert_eq!(client.call(named("done")).await["isError"], false);
        assert_eq!(client.close().await, Ok(()));
        assert_eq!(*host.given_up.lock().unwrap(), 1);
    }
}

#[tokio::test]
async fn end_of_input_cancels_and_awaits_calls() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let host = Fake::new(home.path());
        let mut client = Client::connect(&host, era, json!({})).await;
        waiting(&mut client).await;
        waiting(&mut client).await;
        assert_eq!(client.close().await, Ok(()));
        assert_eq!(*host.given_up.lock().unwrap(), 2);
    }
}

#[tokio::test]
async fn stopped_server_cancels_every_call() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let host = Fake::new(home.path());
        let mut client = Client::connect(&host, era, json!({})).await;
        waiting(&mut client).await;
        client.ending.cancel();
        assert_eq!(client.ended().await, Ok(()));
        assert_eq!(*host.given_up.lock().unwrap(), 1);
    }
}

#[tokio::test]
async fn silent_step_sends_heartbeats() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let host = Fake::new(home.path());
        let mut client = Client::connect(&host, era, json!({})).await;
        waiting(&mut client).await;
        // From here on only the clock is waited for; before, it would overtake the threads.
        tokio::time::pause();
        let mut last = 1.0;
        for _ in 0..5 {
            let begun = Instant::now();
            let report = client.receive().await;
            assert_eq!(begun.elapsed().as_secs(), HEARTBEAT.as_secs());
            assert_eq!(report["method"], "notifications/progress");
            assert_eq!(report["params"]["message"], "still running: waits");
            let progress = report["params"]["progress"].as_f64().unwrap();
            assert!(last < progress && progress < 2.0, "{progress} after {last}");
            last = progress;
        }
        tokio::time::resume();
        assert_eq!(client.close().await, Ok(()));
    }
}

#[tokio::test]
async fn repeated_call_waits_for_the_cancelled_one() {
    let home = tempfile::tempdir().unwrap();
    for era in ERAS {
        let host = Fake::new(home.path());
        let mut client = Client::connect(&host, era, json!({})).await;
        let mut slow = named("stubborn");
        slow["runId"] = json!("r");
        let params = json!({
            "name": "crayfish", "arguments": slow, "_meta": { "progressToken": 1 },
        });
        let id = client.request("tools/call", params).await;
        assert_eq!(client.receive().await["params"]["message"], "waits");
        let params = json!({ "requestId": id, "reason": "too long" });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        client.send(&cancel).await;
        let mut again = named("done");
        again["runId"] = json!("r");
        assert_eq!(client.call(again).await["isError"], false);
        assert_eq!(*host.given_up.lock().unwrap(), 1, "the second call began before the end");
        assert_eq!(client.close().await, Ok(()));
    }
}
