//! Lines as the client was observed to write them, for tests: of its stream and of its rollout.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

pub(super) const THREAD: &str = "01a1df23-a6a0-7e62-ac75-9fbb433c5c8e";
/// The day in the id of the thread.
const DAY: &str = "2026/11/15";
pub(super) const MODEL: &str = "gpt-5.5";

pub(super) fn thread(id: &str) -> String {
    json!({ "type": "thread.started", "thread_id": id }).to_string()
}

pub(super) fn begins() -> String {
    json!({ "type": "turn.started" }).to_string()
}

fn item(event: &str, mut item: Value) -> String {
    item["id"] = "item_0".into();
    json!({ "type": event, "item": item }).to_string()
}

pub(super) fn text(text: &str) -> String {
    item("item.completed", json!({ "type": "agent_message", "text": text }))
}

pub(super) fn command(event: &str, command: &str, status: &str) -> String {
    let command = format!("/bin/bash -lc '{command}'");
    let output = if status == "failed" { "no such file\n" } else { "" };
    let shape = json!({
        "type": "command_execution",
        "command": command,
        "aggregated_output": output,
        "exit_code": null,
        "status": status,
    });
    item(event, shape)
}

pub(super) fn files(status: &str) -> String {
    let changes = json!([{ "path": "/w/a.rs", "kind": "add" }, { "path": "/w/b.rs" }]);
    item("item.completed", json!({ "type": "file_change", "changes": changes, "status": status }))
}

pub(super) fn spawned(thread: &str) -> String {
    let shape = json!({ "type": "collab_tool_call", "tool": "spawn_agent", "receiver_thread_ids": [thread] });
    item("item.completed", shape)
}

/// A warning, which the client calls an error.
pub(super) fn note(message: &str) -> String {
    item("item.completed", json!({ "type": "error", "message": message }))
}

/// Its usage counts the whole thread, and is charged only for a new thread without a rollout.
pub(super) fn completed() -> String {
    let usage = json!({ "input_tokens": 9_000_000, "output_tokens": 9_000_000 });
    json!({ "type": "turn.completed", "usage": usage }).to_string()
}

pub(super) fn error_notice(message: &str) -> String {
    json!({ "type": "error", "message": message }).to_string()
}

pub(super) fn failed(message: &str) -> String {
    json!({ "type": "turn.failed", "error": { "message": message } }).to_string()
}

fn entry(kind: &str, payload: &Value) -> String {
    json!({ "timestamp": "2026-11-15T12:16:58.069Z", "type": kind, "payload": payload }).to_string()
}

/// The start of a turn in the rollout.
pub(super) fn began(turn: &str) -> Vec<String> {
    vec![
        entry("event_msg", &json!({ "type": "task_started", "turn_id": turn })),
        entry("turn_context", &json!({ "turn_id": turn, "model": MODEL })),
    ]
}

/// The start of a branch in its rollout.
pub(super) fn branched(from: &str) -> String {
    entry("session_meta", &json!({ "id": "any", "forked_from_id": from }))
}

pub(super) fn compacted() -> String {
    entry("compacted", &json!({ "message": "a summary" }))
}

pub(super) fn calls() -> String {
    entry("response_item", &json!({ "type": "function_call", "name": "exec_command" }))
}

/// The first instructions of the client to the model.
pub(super) fn instructed(text: &str) -> String {
    let content = json!([{ "type": "input_text", "text": format!("sandbox\n{text}") }]);
    entry("response_item", &json!({ "type": "message", "role": "developer", "content": content }))
}

pub(super) fn returned() -> String {
    entry("response_item", &json!({ "type": "function_call_output", "output": "ok" }))
}

/// A request with 1000 tokens read, 200 of them from the cache, and 100 written.
pub(super) fn used(root_turn: &str) -> String {
    let usage = json!({
        "input_tokens": 1000,
        "cached_input_tokens": 200,
        "cache_write_input_tokens": 0,
        "output_tokens": 100,
        "reasoning_output_tokens": 10,
        "total_tokens": 1100,
    });
    let total = json!({ "input_tokens": 9_000_000, "output_tokens": 9_000_000 });
    let payload = json!({
        "turn_id": "any",
        "root_turn_id": root_turn,
        "usage": usage,
        "thread_token_usage": total,
    });
    entry("token_usage_record", &payload)
}

/// The cost of such a request: 800 + 200 + 100 tokens of three kinds.
pub(super) const USED: u64 = 4000 + 100 + 3000;

/// The cost of another request that reads what the last one read and wrote: 1100 tokens.
pub(super) const FOLLOWED: u64 = 5500;

pub(super) fn limits(primary: u32, secondary: u32) -> String {
    let window = |used: u32, resets_at: u64| json!({ "used_percent": f64::from(used), "resets_at": resets_at });
    let limits = json!({ "primary": window(primary, 1000), "secondary": window(secondary, 2000) });
    entry("event_msg", &json!({ "type": "token_count", "info": null, "rate_limits": limits }))
}

pub(super) fn broken_off() -> String {
    entry("event_msg", &json!({ "type": "turn_aborted", "reason": "interrupted" }))
}

pub(super) fn ended(info: &Value) -> String {
    let error = match info {
        Value::Null => Value::Null,
        info => json!({ "message": "prose", "codex_error_info": info }),
    };
    entry("event_msg", &json!({ "type": "task_complete", "error": error }))
}

/// Writes the rollout of a thread where the client would.
pub(super) fn write(home: &Path, thread: &str, entries: &[String]) {
    write_raw(home, thread, &(entries.join("\n") + "\n"));
}

/// Writes this text there.
pub(super) fn write_raw(home: &Path, thread: &str, text: &str) {
    let day = home.join("sessions").join(DAY);
    fs::create_dir_all(&day).unwrap();
    fs::write(day.join(format!("rollout-2026-11-15T12-16-58-{thread}.jsonl")), text).unwrap();
}
