//! The stream of Codex.

use raymond_backends::codex;
use raymond_backends::headless::ClientSettings;

use super::stream;
use crate::Target;

/// A transcript of Codex.
pub const TARGET: Target = Target {
    name: "codex",
    inputs: 800,
    words: &[
        "{\"type\":\"thread.started\",\"thread_id\":\"00000000-0000-8000-8000-000000000001\"}",
        "\"thread_id\":\"../../x\"",
        "{\"type\":\"turn.started\"}",
        "\"type\":\"item.started\"",
        "\"type\":\"item.completed\"",
        "\"type\":\"item.updated\"",
        "{\"type\":\"turn.completed\",\"usage\":{",
        "\"input_tokens\":18446744073709551615",
        "\"cached_input_tokens\":1",
        "\"output_tokens\":-1",
        "{\"type\":\"turn.failed\",\"error\":{\"message\":\"m\"}}",
        "{\"type\":\"error\",\"message\":\"m\"}",
        "\"item\":{\"type\":\"agent_message\",\"text\":\"x\"}",
        "\"type\":\"command_execution\"",
        "\"status\":\"declined\"",
        "\"status\":\"failed\"",
        "\"type\":\"file_change\"",
        "\"changes\":[{\"path\":\"a\"}]",
        "\"type\":\"mcp_tool_call\"",
        "\"type\":\"collab_tool_call\"",
        "\"receiver_thread_ids\":[\"x\"]",
        "\"type\":\"web_search\"",
        "null",
        "\n",
        "},{",
        "\\ud83e",
    ],
    memory: Target::MEMORY,
    check,
};

fn check(bytes: &[u8]) {
    stream::check(codex::client(ClientSettings::of("codex")).as_ref(), bytes);
}
