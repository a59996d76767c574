//! The stream of Claude Code.

use raymond_backends::claude;
use raymond_backends::headless::ClientSettings;

use super::stream;
use crate::Target;

/// A transcript of Claude Code.
pub const TARGET: Target = Target {
    name: "claude",
    inputs: 800,
    words: &[
        "\"type\":\"system\"",
        "\"subtype\":\"init\"",
        "\"type\":\"assistant\"",
        "\"type\":\"user\"",
        "\"type\":\"result\"",
        "\"subtype\":\"success\"",
        "\"subtype\":\"error_during_execution\"",
        "\"subtype\":\"error_max_budget_usd\"",
        "\"is_error\":true",
        "\"session_id\":\"-x\"",
        "\"message\":{\"id\":\"m\",",
        "\"content\":[",
        "{\"type\":\"text\",\"text\":\"x\"}",
        "{\"type\":\"tool_use\",\"name\":\"Bash\",\"input\":{}}",
        "\"usage\":{\"input_tokens\":18446744073709551615}",
        "\"usage\":{\"input_tokens\":1000000.0,\"output_tokens\":\"1\"}",
        "\"task_type\":\"local_agent\"",
        "\"terminal_reason\":\"aborted_tools\"",
        "\"total_cost_usd\":1e300",
        "\"costUSD\":-1",
        "\"costUSD\":1e400",
        "\"model_usage_since_last_result\":{",
        "\"permission_denials\":[",
        "\"errors\":[\"No conversation found\"]",
        "\"api_error_status\":529",
        "\"resetsAt\":18446744073709551615",
        "\"type\":\"rate_limit_event\"",
        "\"subtype\":\"api_retry\"",
        "\"error_status\":401",
        "\"model\":\"<synthetic>\"",
        "\"structured_output\":",
        "\"parent_tool_use_id\":\"t\"",
        "\\ud83e",
        "\\udd80",
        "null",
        "\n",
        "},{",
        "\"result\":",
        "\"task_id\":\"t\"",
        "\"subtype\":\"task_started\"",
        "\"subtype\":\"background_tasks_changed\"",
        "\"tasks\":[",
    ],
    memory: Target::MEMORY,
    check,
};

fn check(bytes: &[u8]) {
    let client = claude::client(ClientSettings::of("claude"));
    stream::check(client.as_ref(), bytes);
    stream::check_never_free(client.as_ref(), bytes);
}
