//! The lines of the stream, as the real program was observed to write them.
//!
//! Keys that Raymond does not read are included as well, so that its parser meets lines of the real
//! size and shape.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{ErrorKind, Write as _};

use serde_json::{Value, json};

/// Writes one line. A closed reader is ignored, as in the real program; a full disk ends the
/// process.
pub(super) fn emit(line: &Value) {
    print(line.to_string().as_bytes());
}

#[expect(clippy::exit, reason = "the program is a client, and it dies here")]
pub(super) fn print(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.write_all(b"\n"));
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            let why = "Error: ENOSPC: no space left on device, write";
            writeln!(std::io::stderr(), "{why}").ok();
            std::process::exit(1);
        }
        Ok(()) | Err(_) => {}
    }
}

/// Writes the first half of a line, which ends inside a character.
pub(super) fn print_half(line: &Value) {
    let text = line.to_string();
    let mut half = text.as_bytes()[..text.len() / 2].to_vec();
    // Two of three bytes, so that a reader that decodes pieces on their own fails.
    half.extend_from_slice(&"€".as_bytes()[..2]);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&half).ok();
    stdout.flush().ok();
}

pub(super) fn uuid() -> String {
    // `RandomState` is the only source of random numbers in the standard library.
    let half = |salt: u8| RandomState::new().hash_one((std::process::id(), salt));
    let (high, low) = (half(0), half(1));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

pub(super) fn init(session: &str, model: &str, mode: &str) -> Value {
    json!({
        "type": "system",
        "subtype": "init",
        "cwd": std::env::current_dir().unwrap_or_default(),
        "session_id": session,
        "model": model,
        "permissionMode": mode,
        "tools": ["Bash", "Edit", "Read", "WebFetch", "Write"],
        "mcp_servers": [],
        "apiKeySource": "ANTHROPIC_API_KEY",
        "claude_code_version": "2.1.325",
        "uuid": uuid(),
    })
}

pub(super) struct Block<'a> {
    pub(super) session: &'a str,
    pub(super) model: &'a str,
    pub(super) message: &'a str,
    pub(super) content: Value,
    pub(super) tokens: (u64, u64),
}

pub(super) fn assistant(block: &Block<'_>) -> Value {
    json!({
        "type": "assistant",
        "message": {
            "id": block.message,
            "type": "message",
            "role": "assistant",
            "model": block.model,
            "content": [block.content],
            "stop_reason": null,
            "usage": {
                "input_tokens": block.tokens.0,
                "output_tokens": block.tokens.1,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        },
        "parent_tool_use_id": null,
        "session_id": block.session,
        "uuid": uuid(),
    })
}

pub(super) fn tool_result(session: &str, call: &str, content: &str, denied: Denied) -> Value {
    json!({
        "type": "user",
        "message": {
            "role": "user",
            "content": [{
                "type": "tool_result",
                "tool_use_id": call,
                "content": content,
                "is_error": denied == Denied::Yes,
            }],
        },
        "parent_tool_use_id": null,
        "session_id": session,
        "uuid": uuid(),
    })
}

/// Whether a tool was allowed to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    Yes,
    No,
}

/// Builds a line of type `system` with these further keys.
pub(super) fn system(subtype: &str, session: &str, more: Value) -> Value {
    let mut line = json!({
        "type": "system",
        "subtype": subtype,
        "session_id": session,
        "uuid": uuid(),
    });
    if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
        line.extend(more);
    }
    line
}

/// Builds a tool's input object in its real shape.
pub(super) fn tool_input(tool: &str, input: &str) -> Value {
    match tool {
        "Bash" => json!({ "command": input, "description": "as the test says" }),
        "WebFetch" => json!({ "url": input, "prompt": "read it" }),
        "Read" | "Edit" | "Write" => json!({ "file_path": input }),
        _ => json!({ "input": input }),
    }
}
