//! Anthropic's Messages API: parses requests, and builds messages as one value or as events.

use raymond_core::prices::Usage;
use serde_json::{Value, json};

use super::conversation::{ConversationItem, Form, ParsedRequest, Role, without_reminders};
use super::reply::{Block, Failure, Message, StopReason};
use crate::model::event::{Event, ReplyId};

/// The longest text in one delta, in characters. Short, so that large replies arrive in several
/// events.
const MAX_DELTA_CHARS: usize = 2048;

pub(super) fn read(body: &Value) -> ParsedRequest {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (systems, spoken): (Vec<&Value>, Vec<&Value>) =
        messages.iter().partition(|message| message["role"] == "system");
    let told = std::iter::once(&body["system"]).chain(systems.iter().map(|said| &said["content"]));
    let tools = body["tools"].as_array().into_iter().flatten();
    ParsedRequest {
        model: string_of(&body["model"]),
        system: told.map(plain).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"),
        conversation: spoken.into_iter().flat_map(items_of).collect(),
        tools: tools.map(|tool| string_of(&tool["name"])).collect(),
        form: if body["stream"] == true { Form::Stream } else { Form::Whole },
    }
}

fn items_of(message: &Value) -> Vec<ConversationItem> {
    let role = if message["role"] == "assistant" { Role::Assistant } else { Role::User };
    let block = |block: &Value| match block["type"].as_str() {
        Some("text") => {
            Some(ConversationItem::new(role, without_reminders(block["text"].as_str()?)?))
        }
        Some("tool_use") => {
            let text = format!("{} {}", string_of(&block["name"]), block["input"]);
            Some(ConversationItem::new(Role::Call, text))
        }
        Some("tool_result") => {
            let text = without_reminders(&plain(&block["content"])).unwrap_or_default();
            Some(ConversationItem::new(Role::Outcome, text))
        }
        _ => None,
    };
    match &message["content"] {
        Value::String(text) => without_reminders(text)
            .map(|text| ConversationItem::new(role, text))
            .into_iter()
            .collect(),
        Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
        _ => Vec::new(),
    }
}

/// Returns the text of a content, which is a string or text blocks.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn string_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn whole(message: &Message, reply_id: &ReplyId) -> Value {
    let blocks = message.blocks.iter().enumerate();
    let blocks: Vec<Value> = blocks.map(|(index, block)| content(block, index, reply_id)).collect();
    let mut whole = envelope(reply_id, &usage(&message.usage, message.usage.output));
    whole["content"] = blocks.into();
    whole["stop_reason"] = stop_reason(message.stop).into();
    whole
}

pub(super) fn events(message: &Message, reply_id: &ReplyId) -> Vec<Event> {
    // Like the real API, whose first event has only a partial count of output tokens. So Raymond
    // must take the count of the last event.
    let started = envelope(reply_id, &usage(&message.usage, 1));
    let mut events = vec![event("message_start", json!({ "message": started }))];
    for (index, block) in message.blocks.iter().enumerate() {
        let start = json!({ "index": index, "content_block": opening(block, index, reply_id) });
        events.push(event("content_block_start", start));
        for delta in deltas(block) {
            events.push(event("content_block_delta", json!({ "index": index, "delta": delta })));
        }
        events.push(event("content_block_stop", json!({ "index": index })));
    }
    let ending = json!({
        "delta": { "stop_reason": stop_reason(message.stop), "stop_sequence": null },
        "usage": usage(&message.usage, message.usage.output),
    });
    events.push(event("message_delta", ending));
    events.push(event("message_stop", json!({})));
    events
}

pub(super) fn error(failure: &Failure) -> Value {
    let usual = match failure.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let kind = failure.kind.as_deref().unwrap_or(usual);
    json!({ "type": "error", "error": { "type": kind, "message": failure.message } })
}

fn event(name: &'static str, mut data: Value) -> Event {
    data["type"] = name.into();
    Event { name, data }
}

fn envelope(reply_id: &ReplyId, usage: &Value) -> Value {
    json!({
        "id": format!("msg_{}", reply_id.id),
        "type": "message",
        "role": "assistant",
        "model": reply_id.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn usage(usage: &Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            // A one-hour cache write has another price, so the script has only writes of five
            // minutes.
            "ephemeral_1h_input_tokens": 0,
        },
    })
}

const fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Ended => "end_turn",
        StopReason::Tool => "tool_use",
        StopReason::Refused => "refusal",
    }
}

fn content(block: &Block, index: usize, reply_id: &ReplyId) -> Value {
    let mut content = opening(block, index, reply_id);
    match block {
        Block::Thinking(text) => {
            content["thinking"] = text.as_str().into();
            content["signature"] = SIGNATURE.into();
        }
        Block::Text(text) => content["text"] = text.as_str().into(),
        Block::Tool { input, .. } => content["input"] = input.clone(),
    }
    content
}

/// Any base64 text will do: clients send it back unread.
const SIGNATURE: &str = "c2lnbmVkIGJ5IHRoZSBzY3JpcHQ=";

fn opening(block: &Block, index: usize, reply_id: &ReplyId) -> Value {
    match block {
        Block::Thinking(_) => json!({ "type": "thinking", "thinking": "", "signature": "" }),
        Block::Text(_) => json!({ "type": "text", "text": "" }),
        Block::Tool { name, .. } => {
            let id = format!("toolu_{}_{index}", reply_id.id);
            json!({ "type": "tool_use", "id": id, "name": name, "input": {} })
        }
    }
}

fn deltas(block: &Block) -> Vec<Value> {
    match block {
        Block::Thinking(text) => {
            let delta = |text| json!({ "type": "thinking_delta", "thinking": text });
            let signature = json!({ "type": "signature_delta", "signature": SIGNATURE });
            pieces(text).into_iter().map(delta).chain([signature]).collect()
        }
        Block::Text(text) => {
            let delta = |text| json!({ "type": "text_delta", "text": text });
            pieces(text).into_iter().map(delta).collect()
        }
        Block::Tool { input, .. } => {
            let delta = |text| json!({ "type": "input_json_delta", "partial_json": text });
            pieces(&input.to_string()).into_iter().map(delta).collect()
        }
    }
}

/// Splits a text into at least two pieces, if possible, so that a cut can leave half a text.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len().div_ceil(2).clamp(1, MAX_DELTA_CHARS);
    characters.chunks(length).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests;
