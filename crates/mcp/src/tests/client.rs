//! A client of either protocol version that sends raw JSON and checks everything.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fake::Fake;
use crate::stdio::{self, ServeError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

pub(super) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

pub(super) struct Client {
    era: Era,
    capabilities: Json,
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    served: JoinHandle<Result<(), ServeError>>,
    pub(super) ending: CancellationToken,
    last: u64,
}

impl Client {
    pub(super) async fn connect(host: &Arc<Fake>, era: Era, capabilities: Json) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(ours);
        let ending = CancellationToken::new();
        let host: Arc<Fake> = Arc::clone(host);
        let (input, output) = tokio::io::split(theirs);
        let served = tokio::spawn(stdio::serve(host, input, output, ending.clone()));
        let reader = BufReader::new(reader);
        let mut client = Self { era, capabilities, reader, writer, served, ending, last: 0 };
        if era == Era::Legacy {
            let hello = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": client.capabilities,
                "clientInfo": { "name": "test", "version": "1" },
            });
            let answer = client.ask("initialize", hello).await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        }
        client
    }

    pub(super) async fn send(&mut self, message: &Json) {
        self.write(&message.to_string()).await;
    }

    pub(super) async fn write(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(super) async fn receive(&mut self) -> Json {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    pub(super) fn next_id(&self) -> u64 {
        self.last + 1
    }

    /// Sends a request, and returns its id.
    pub(super) async fn request(&mut self, method: &str, mut params: Json) -> u64 {
        self.last += 1;
        if self.era == Era::Modern {
            let prefix = "io.modelcontextprotocol";
            params["_meta"][format!("{prefix}/protocolVersion")] = json!("2026-07-28");
            params["_meta"][format!("{prefix}/clientCapabilities")] = self.capabilities.clone();
            params["_meta"][format!("{prefix}/clientInfo")] =
                json!({ "name": "t", "version": "1" });
        }
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    pub(super) async fn ask(&mut self, method: &str, params: Json) -> Json {
        let id = self.request(method, params).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(super) async fn call(&mut self, arguments: Json) -> Json {
        let params = json!({ "name": "crayfish", "arguments": arguments });
        let answer = self.ask("tools/call", params).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    pub(super) async fn close(self) -> Result<(), String> {
        drop((self.reader, self.writer));
        self.served.await.unwrap().map_err(|error| error.to_string())
    }

    /// Waits for the server, which ends on its own.
    pub(super) async fn ended(self) -> Result<(), String> {
        self.served.await.unwrap().map_err(|error| error.to_string())
    }
}
