//! The Responses API of `OpenAI`: parses requests, and builds responses as events or as one value.
//!
//! Text that the client adds by itself is left out of the conversation: instructions arrive as
//! developer messages, the environment as user messages inside a tag.

use raymond_core::prices::Usage;
use serde_json::{Value, json};

use super::conversation::{ConversationItem, Form, ParsedRequest, Role};
use super::reply::{Block, Failure, Message, StopReason};
use crate::model::event::{Event, ReplyId};

/// The tags around text that the client adds in the role of the user.
const CLIENT_TAGS: [&str; 4] =
    ["<environment_context>", "<turn_aborted>", "<subagent_notification>", "<user_instructions>"];

pub(super) fn read(body: &Value) -> ParsedRequest {
    let input = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let systems = input.iter().filter(|item| item["role"] == "developer");
    let systems = systems.flat_map(texts).chain(body["instructions"].as_str().map(str::to_owned));
    let tools = body["tools"].as_array().into_iter().flatten();
    ParsedRequest {
        model: string_of(&body["model"]),
        system: systems.collect::<Vec<_>>().join("\n"),
        conversation: input.iter().flat_map(items_of).collect(),
        tools: tools.map(|tool| string_of(&tool["name"])).filter(|name| !name.is_empty()).collect(),
        form: if body["stream"] == true { Form::Stream } else { Form::Whole },
    }
}

fn items_of(item: &Value) -> Vec<ConversationItem> {
    match (item["type"].as_str().unwrap_or("message"), item["role"].as_str()) {
        ("message", Some("user")) => {
            let is_added = |text: &String| CLIENT_TAGS.iter().any(|tag| text.starts_with(tag));
            let own = texts(item).into_iter().filter(|text| !is_added(text));
            own.map(|text| ConversationItem::new(Role::User, text)).collect()
        }
        ("message", Some("assistant")) => texts(item)
            .into_iter()
            .map(|text| ConversationItem::new(Role::Assistant, text))
            .collect(),
        ("function_call", _) => vec![call(item, "arguments")],
        ("custom_tool_call", _) => vec![call(item, "input")],
        ("function_call_output" | "custom_tool_call_output", _) => {
            vec![ConversationItem::new(Role::Outcome, outcome(&item["output"]))]
        }
        _ => Vec::new(),
    }
}

fn call(item: &Value, input: &str) -> ConversationItem {
    ConversationItem::new(
        Role::Call,
        format!("{} {}", string_of(&item["name"]), string_of(&item[input])),
    )
}

/// Returns the output of a command, without the status that the client puts before it.
fn outcome(output: &Value) -> String {
    let text = string_of(output);
    text.split_once("\nOutput:\n").map_or(text.as_str(), |(_, printed)| printed).to_owned()
}

fn texts(item: &Value) -> Vec<String> {
    let parts = item["content"].as_array().into_iter().flatten();
    parts.map(|part| string_of(&part["text"])).filter(|text| !text.is_empty()).collect()
}

fn string_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn whole(message: &Message, reply_id: &ReplyId) -> Value {
    let mut whole = envelope(reply_id);
    whole["output"] = items(message, reply_id).into();
    whole["usage"] = usage(&message.usage);
    match message.stop {
        StopReason::Ended | StopReason::Tool => whole["status"] = "completed".into(),
        StopReason::Refused => {
            whole["status"] = "incomplete".into();
            whole["incomplete_details"] = json!({ "reason": "content_filter" });
        }
    }
    whole
}

pub(super) fn events(message: &Message, reply_id: &ReplyId) -> Vec<Event> {
    let mut events = vec![event("response.created", json!({ "response": envelope(reply_id) }))];
    for (index, item) in items(message, reply_id).into_iter().enumerate() {
        let mut added = item.clone();
        // The real API announces an item without its content, which follows in deltas.
        for empty in ["content", "summary"] {
            if added[empty].is_array() {
                added[empty] = json!([]);
            }
        }
        let place = json!({ "output_index": index, "item": added });
        events.push(event("response.output_item.added", place));
        for delta in item["content"][0]["text"].as_str().map(halves).into_iter().flatten() {
            let place = json!({ "output_index": index, "content_index": 0, "item_id": item["id"] });
            events.push(event("response.output_text.delta", with(place, "delta", delta)));
        }
        let place = json!({ "output_index": index, "item": item });
        events.push(event("response.output_item.done", place));
    }
    let last = match message.stop {
        StopReason::Ended | StopReason::Tool => "response.completed",
        StopReason::Refused => "response.incomplete",
    };
    events.push(event(last, json!({ "response": whole(message, reply_id) })));
    events
}

pub(super) fn error(failure: &Failure) -> Value {
    let usual = match failure.status {
        401 => "invalid_api_key",
        404 => "model_not_found",
        429 => "rate_limit_exceeded",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    let kind = failure.kind.as_deref().unwrap_or(usual);
    json!({ "error": { "type": kind, "code": kind, "message": failure.message } })
}

fn event(name: &'static str, data: Value) -> Event {
    Event { name, data: with(data, "type", name) }
}

fn with(mut data: Value, key: &str, value: impl Into<Value>) -> Value {
    data[key] = value.into();
    data
}

fn envelope(reply_id: &ReplyId) -> Value {
    json!({
        "id": format!("resp_{}", reply_id.id),
        "object": "response",
        "status": "in_progress",
        "model": reply_id.model,
        "output": [],
    })
}

fn items(message: &Message, reply_id: &ReplyId) -> Vec<Value> {
    let blocks = message.blocks.iter().enumerate();
    blocks.map(|(index, block)| item(block, &format!("{}_{index}", reply_id.id))).collect()
}

fn item(block: &Block, id: &str) -> Value {
    match block {
        Block::Thinking(text) => json!({
            "type": "reasoning",
            "id": format!("rs_{id}"),
            "summary": [{ "type": "summary_text", "text": text }],
            "encrypted_content": "c2VhbGVkIGJ5IHRoZSBzY3JpcHQ=",
        }),
        Block::Text(text) => json!({
            "type": "message",
            "id": format!("msg_{id}"),
            "role": "assistant",
            "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        Block::Tool { name, input } => {
            // A tool in a group is named `GROUP/TOOL`.
            let (group, name) =
                name.split_once('/').map_or((None, name.as_str()), |(g, n)| (Some(g), n));
            let mut call = json!({
                "type": "function_call",
                "id": format!("fc_{id}"),
                "call_id": format!("call_{id}"),
                "name": name,
                "arguments": input.to_string(),
            });
            if let Some(group) = group {
                call["namespace"] = group.into();
            }
            call
        }
    }
}

/// Builds the usage object; `OpenAI` counts cache reads and writes as input.
fn usage(usage: &Usage) -> Value {
    let input = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": input + usage.output,
    })
}

/// Splits a text into two halves, if possible, so that a cut can leave half a text.
fn halves(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len().div_ceil(2).max(1);
    characters.chunks(length).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests;
