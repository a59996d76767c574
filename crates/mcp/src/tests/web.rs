//! Messages over HTTP are read like those over stdio.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fake::Fake;
use crate::{LONGEST, Server, http};

/// A server that listens on this machine.
struct Served {
    address: String,
    ending: CancellationToken,
    task: JoinHandle<()>,
}

impl Served {
    async fn new(host: &Arc<Fake>) -> Self {
        let ending = CancellationToken::new();
        let listener = http::listen("127.0.0.1:0".parse().unwrap(), &[]).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let host: Arc<Fake> = Arc::clone(host);
        let (server, end) = (Server::new(host, ending.clone()), ending.clone());
        let task = tokio::spawn(async move { http::serve(server, listener, &[], end).await });
        Self { address, ending, task }
    }

    /// Returns the status and the message of the answer.
    async fn post(&self, headers: &[&str], body: &[u8]) -> (u16, Json) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let (host, length) = (&self.address, body.len());
        let standard = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
            Connection: close\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: crayfish";
        let more: String = headers.iter().flat_map(|header| [header, "\r\n"]).collect();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{more}{standard}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that refuses a request need not read all of it.
        stream.write_all(body).await.ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok();
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let lines = answer.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let message = lines.rev().find(|line| line.starts_with('{')).unwrap_or("null");
        (status, serde_json::from_str(message).unwrap())
    }

    /// Returns the whole answer to a request without a body.
    async fn ask(&self, method: &str, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn end(self) {
        self.ending.cancel();
        self.task.await.unwrap();
    }
}

/// Returns a call of the tool in the protocol version without a handshake.
fn call(arguments: &Json) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "crayfish", "arguments": arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params }).to_string()
}

#[tokio::test]
async fn arguments_arrive_as_they_are_however_deep() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    let served = Served::new(&host).await;
    let deep = (0..900).fold(json!(1), |inner, _| json!([inner]));
    let arguments = json!({ "workflow": { "name": "done" }, "odd": null, "deep": deep });
    let (status, answer) = served.post(&[], call(&arguments).as_bytes()).await;
    assert_eq!((status, &answer["result"]["isError"]), (200, &json!(false)), "{answer}");
    assert!(host.last() == arguments, "the request is another");
    served.end().await;
}

#[tokio::test]
async fn invalid_message_is_answered_as_over_stdio() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    let served = Served::new(&host).await;
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let too_deep = format!(r#"{{"id":9,"a":{}}}"#, nested(10_000));
    let elsewhere = format!(
        r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{{"name":"crayfish","_meta":{{"a":{}}}}}}}"#,
        nested(200)
    );
    let objects = format!(r#"{{"id":6,"method":"x","a":[{}0]}}"#, "{},".repeat(1 << 20));
    for (body, status, code, id) in [
        (objects.as_bytes(), 413, -32600, json!(6)),
        (&b"nonsense"[..], 400, -32700, Json::Null),
        (b"", 400, -32700, Json::Null),
        (b"{\"id\":1,\"a\":\"\xff\"}", 400, -32700, json!(1)),
        (br#"{"id":7,"id2":1,"id2":2}"#, 400, -32700, json!(7)),
        (too_deep.as_bytes(), 400, -32700, json!(9)),
        (elsewhere.as_bytes(), 400, -32600, json!(8)),
        (br#"{"id":"x","jsonrpc":"2.0"}"#, 400, -32600, json!("x")),
        (b"[]", 400, -32600, Json::Null),
        (&vec![b' '; LONGEST + 1], 413, -32600, Json::Null),
    ] {
        let (given, answer) = served.post(&[], body).await;
        let body = String::from_utf8_lossy(&body[..body.len().min(60)]);
        assert_eq!(
            (given, &answer["error"]["code"], answer.get("id").unwrap_or(&Json::Null)),
            (status, &json!(code), &id),
            "{body}: {answer}"
        );
    }
    assert_eq!(host.requests.lock().unwrap().len(), 0);
    served.end().await;
}

// proves: S51
#[tokio::test]
async fn refused_caller_learns_nothing_about_its_message() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::new(&Fake::new(home.path())).await;
    let refused = served.post(&["Origin: http://evil.example"], b"nonsense").await;
    assert_eq!(refused, (403, Json::Null));
    served.end().await;
}

#[tokio::test]
async fn elsewhere_nothing_is_found() {
    let home = tempfile::tempdir().unwrap();
    let host = Fake::new(home.path());
    let served = Served::new(&host).await;
    let answer = served.ask("GET", "/", "").await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nnot found: clients are served at /mcp\n"), "{answer}");
    served.end().await;
}

#[tokio::test]
async fn client_can_end_its_session() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::new(&Fake::new(home.path())).await;
    let client = json!({ "name": "t", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let hello =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    let headers = format!(
        "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n",
        hello.len()
    );
    let mut stream = TcpStream::connect(&served.address).await.unwrap();
    let host = &served.address;
    let request =
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n{hello}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let mut lines = answer.lines();
    let session = lines.find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let ends = async |headers: &str, expected: &str| {
        let answer = served.ask("DELETE", "/mcp", headers).await;
        assert_eq!(answer.split(' ').nth(1), Some(expected), "{headers}: {answer}");
    };
    let named = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
    ends(&named, "200").await;
    ends(&named, "404").await;
    ends("", "400").await;
    // The newer protocol has no sessions.
    ends("MCP-Protocol-Version: 2026-07-28\r\n", "405").await;
    served.end().await;
}
