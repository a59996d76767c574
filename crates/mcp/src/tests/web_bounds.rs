//! Clients over HTTP that are slow or exceed the limits.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fake::Fake;
use crate::body::BODY_LIMIT;
use crate::http::{self, CONNECTIONS, STREAMS, connection, endpoint};
use crate::{LONGEST, Server};

/// Returns the head of a request with a body.
fn head(more: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n{more}\r\n"
    )
}

/// A connection in memory with a buffer of this many bytes, on the clock of the test.
fn connect(home: &std::path::Path, buffer: usize) -> (DuplexStream, JoinHandle<()>) {
    let (ours, theirs) = tokio::io::duplex(buffer);
    let host: Arc<Fake> = Fake::new(home);
    let ending = CancellationToken::new();
    let endpoint = endpoint(Server::new(host, ending.clone()), &[], &ending);
    (ours, tokio::spawn(connection::serve(theirs, endpoint, ending)))
}

// proves: A18, S45
#[tokio::test(start_paused = true)]
async fn a_slow_request_ends() {
    let home = tempfile::tempdir().unwrap();
    let body = head("Content-Length: 1000000\r\n");
    let chunks = head("Transfer-Encoding: chunked\r\n");
    for (first, drop_by_drop, status) in [
        ("", "", ""),
        ("GET /m", "c", ""),
        ("GET /mcp HTTP/1.1\r\nX: ", "x", ""),
        (&body, "", "408"),
        (&body, "x", "408"),
        (&chunks, "", "408"),
        (&chunks, "1\r\nx\r\n", "408"),
    ] {
        let (client, served) = connect(home.path(), 1 << 16);
        let (mut reader, mut writer) = tokio::io::split(client);
        let begun = Instant::now();
        writer.write_all(first.as_bytes()).await.unwrap();
        let dripping = tokio::spawn(async move {
            while writer.write_all(drop_by_drop.as_bytes()).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let mut answer = String::new();
        reader.read_to_string(&mut answer).await.unwrap();
        served.await.unwrap();
        assert!(begun.elapsed() <= BODY_LIMIT + Duration::from_secs(1), "{first:?}");
        assert_eq!(answer.split(' ').nth(1).unwrap_or(""), status, "{first:?}: {answer}");
        dripping.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn announced_long_body_is_refused_at_once() {
    let home = tempfile::tempdir().unwrap();
    for (more, status) in [
        (format!("Content-Length: {}\r\n", LONGEST + 1), "413"),
        (format!("Content-Length: {}\r\n", u64::MAX - 16), "413"),
    ] {
        let (mut client, served) = connect(home.path(), 1 << 16);
        client.write_all(head(&more).as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer[9..], status.as_bytes(), "{more}");
        drop(client);
        served.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_requests_end_the_connection() {
    let home = tempfile::tempdir().unwrap();
    let chunk = format!("{}FFFFFFFFFFFFFFFFF\r\nx", head("Transfer-Encoding: chunked\r\n"));
    let flood = format!("GET /mcp HTTP/1.1\r\n{}", "X: y\r\n".repeat(1_000));
    let long = format!("GET /mcp HTTP/1.1\r\nX: {}", "y".repeat(128 << 10));
    let both = head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
    let twice = head("Content-Length: 5\r\nContent-Length: 6\r\n");
    for bad in [&chunk, &flood, &long, &both, &twice] {
        let begun = Instant::now();
        let (client, served) = connect(home.path(), 1 << 10);
        let (mut reader, mut writer) = tokio::io::split(client);
        let text = bad.clone();
        let writing = tokio::spawn(async move { writer.write_all(text.as_bytes()).await.ok() });
        let mut answer = String::new();
        reader.read_to_string(&mut answer).await.unwrap();
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
        served.await.unwrap();
        writing.await.unwrap();
        let start: String = bad.chars().take(80).collect();
        assert!(begun.elapsed() <= BODY_LIMIT, "{start}");
    }
}

/// Returns a request of the protocol version without a handshake.
fn list() -> String {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{meta}}}}}"#);
    let more = format!("Mcp-Method: tools/list\r\nContent-Length: {}\r\n", body.len());
    head(&more) + &body
}

// proves: S45
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected() {
    let home = tempfile::tempdir().unwrap();
    // The answer is longer than the buffer.
    let (mut client, served) = connect(home.path(), 1 << 10);
    let begun = Instant::now();
    client.write_all(list().as_bytes()).await.unwrap();
    served.await.unwrap();
    assert!(begun.elapsed() < Duration::from_mins(2), "{:?}", begun.elapsed());
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer.len(), 1 << 10);
}

/// A server that listens on this machine.
struct Served {
    address: String,
    ending: CancellationToken,
    task: JoinHandle<()>,
}

impl Served {
    async fn new(home: &std::path::Path) -> Self {
        let ending = CancellationToken::new();
        let listener = http::listen("127.0.0.1:0".parse().unwrap(), &[]).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (server, end) = (Server::new(Fake::new(home), ending.clone()), ending.clone());
        let task = tokio::spawn(async move { http::serve(server, listener, &[], end).await });
        Self { address, ending, task }
    }

    /// Sends a request, and reads the answer up to the end of its head.
    async fn ask(&self, request: &str) -> (String, TcpStream) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        while !answer.contains("\r\n\r\n") {
            let byte = stream.read_u8().await.unwrap_or_else(|error| panic!("{answer}: {error}"));
            answer.push(char::from(byte));
        }
        (answer, stream)
    }

    /// Begins a session of the older protocol version.
    async fn session(&self) -> String {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let (answer, _) = self.ask(&(head + body)).await;
        let id = answer.split_once("mcp-session-id: ").unwrap_or_else(|| panic!("{answer}")).1;
        id.split_once("\r\n").unwrap().0.to_owned()
    }

    /// Opens the stream of a session.
    async fn listen(&self, session: &str) -> (u16, TcpStream) {
        let head = format!(
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
             MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n\r\n"
        );
        let (answer, stream) = self.ask(&head).await;
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), stream)
    }

    async fn end(self) {
        self.ending.cancel();
        self.task.await.unwrap();
    }
}

// proves: S45
#[tokio::test]
async fn a_new_session_replaces_an_idle_one() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::new(home.path()).await;
    let (used, idle) = (served.session().await, served.session().await);
    let (status, _listening) = served.listen(&used).await;
    assert_eq!(status, 200);
    let mut others = Vec::new();
    for _ in 0..http::SESSIONS - 1 {
        others.push(served.session().await);
    }
    assert_eq!(served.listen(&idle).await.0, 404);
    for session in [&used, &others[0], &others[others.len() - 1]] {
        assert_eq!(served.listen(session).await.0, 200);
    }
    served.end().await;
}

// proves: S45
#[tokio::test]
async fn streams_without_an_end_are_bounded() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::new(home.path()).await;
    let mut streams = Vec::new();
    let mut session = String::new();
    for n in 0..STREAMS {
        if n % 16 == 0 {
            session = served.session().await;
        }
        let (status, stream) = served.listen(&session).await;
        assert_eq!(status, 200);
        streams.push(stream);
    }
    assert_eq!(served.listen(&session).await.0, 503);
    assert!(served.ask(&list()).await.0.starts_with("HTTP/1.1 200 "));
    drop(streams.pop());
    while served.listen(&session).await.0 == 503 {}
    served.end().await;
}

// proves: S45
#[tokio::test]
async fn connections_are_bounded() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::new(home.path()).await;
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        // The answer shows that this connection is served; it stays open.
        let (answer, stream) = served.ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        idle.push(stream);
    }
    let (answer, _) = served.ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    idle.pop();
    while !served.ask(&list()).await.0.starts_with("HTTP/1.1 200 ") {}
    served.end().await;
}
