//! Messages of MCP clients: for any lines, every answer is a message of the protocol, and the end
//! of the input ends the service.

use std::sync::Arc;
use std::time::Duration;

use raymond_core::crayfish::envelope::CallReply;
use raymond_core::crayfish::error_code::ErrorCode;
use raymond_core::ids::RunId;
use raymond_engine::call::{CallChannels, RawRequest};
use raymond_engine::project::Project;
use raymond_mcp::{ToolHost, stdio};
use serde_json::Value as Json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use crate::Target;

/// The lines of a client.
pub const TARGET: Target = Target {
    name: "mcp",
    inputs: 800,
    words: &[
        "{\"jsonrpc\":\"2.0\",",
        "\"id\":1,",
        "\"id\":\"x\",",
        "\"id\":null,",
        "\"method\":\"initialize\",",
        "\"method\":\"tools/call\",",
        "\"method\":\"tools/list\"",
        "\"method\":\"prompts/get\",",
        "\"method\":\"resources/read\",",
        "\"method\":\"ping\"",
        "\"method\":\"notifications/cancelled\",",
        "\"method\":\"notifications/initialized\"",
        "\"params\":{",
        "\"name\":\"crayfish\",",
        "\"arguments\":{",
        "\"uri\":\"raymond://runs/x\"",
        "\"_meta\":{",
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"",
        "\"requestState\":\"x\"",
        "\"inputResponses\":{",
        "\"protocolVersion\":\"2025-11-25\"",
        "\"capabilities\":{}",
        "\"result\":{}",
        "\"error\":{",
        "\"progressToken\":1",
        "\n",
        "[",
        "]",
        "{}",
        "null",
    ],
    memory: Target::MEMORY,
    check,
};

/// The first messages of every client; the input follows them.
const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);

fn check(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    // With and without the greeting, because the server may treat the same line differently before
    // it.
    for input in [bytes.to_vec(), [HELLO.as_bytes(), bytes].concat()] {
        let lines = input.split(|byte| *byte == b'\n').count();
        let answers = runtime.block_on(served(input));
        let answers: Vec<&[u8]> = answers.split_inclusive(|byte| *byte == b'\n').collect();
        for answer in &answers {
            let said: Json = serde_json::from_slice(answer).expect("an answer is JSON");
            assert_eq!(said["jsonrpc"], "2.0", "{said}");
            // An error needs no id: whom it is for may be what could not be read.
            let known = ["id", "method", "error"].iter().any(|key| said.get(key).is_some());
            assert!(known, "{said} is for nobody");
        }
        // A call may be followed by a word on its progress; nothing else is said unasked.
        assert!(answers.len() <= 2 * lines, "{} answers to {lines} lines", answers.len());
    }
}

/// All that a server says to these lines.
async fn served(input: Vec<u8>) -> Vec<u8> {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (mut reader, mut writer) = tokio::io::split(ours);
    let ending = CancellationToken::new();
    let (requests, replies) = tokio::io::split(theirs);
    let serving = stdio::serve(Arc::new(Nobody), requests, replies, ending);
    let sending = async {
        // A server that has ended reads no further.
        writer.write_all(&input).await.ok();
        writer.shutdown().await.ok();
    };
    let mut answers = Vec::new();
    let all = async { tokio::join!(serving, sending, reader.read_to_end(&mut answers)) };
    // Far more than any input takes, because a busy machine must not fail the test.
    let ended = tokio::time::timeout(Duration::from_mins(1), Box::pin(all)).await;
    ended.expect("a service ends with its input").2.expect("a stream");
    answers
}

/// A host that refuses every call.
struct Nobody;

impl ToolHost for Nobody {
    fn call(&self, _: RawRequest, _: CallChannels) -> CallReply {
        CallReply::failed(ErrorCode::BadRequest, "nobody is here", Vec::new())
    }

    fn project(&self, _: Option<&str>) -> Result<Project, String> {
        Err("there is no project".to_owned())
    }

    fn summary(&self, _: &RunId) -> String {
        String::new()
    }

    fn record(&self, _: &RunId) -> Result<Option<Json>, String> {
        Ok(None)
    }
}
