//! Parsing of one line of the client's stream.
//!
//! Lines of unknown types and lines that are not JSON cause a warning and stay in the transcript. A
//! field of an unexpected type counts as absent.

use raymond_core::prices::Usage;
use serde::Deserialize;
use serde_json::Value;

use super::rollout::parse_usage;

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// The thread that the client writes.
    Thread(String),
    /// The client sends a request to the model.
    Begins,
    /// An item started or changed.
    Doing(Item),
    /// An item is complete.
    Done(Item),
    /// The turn has ended. The usage counts the whole thread.
    Completed(Option<Usage>),
    Failed(String),
    /// A request failed and is retried, or the turn is about to fail.
    Error(String),
    Ignored,
    Unknown(String),
    NotJson,
}

/// An item of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// A message of the model.
    Message(String),
    /// A shell command.
    Command {
        command: String,
        status: String,
        output: String,
    },
    /// Files that are written.
    Files {
        paths: Vec<String>,
        status: String,
    },
    /// A call of an MCP tool or a web search.
    Tool {
        name: String,
        failed: Option<String>,
    },
    /// Agents that the model started.
    Agents {
        tool: String,
        threads: Vec<String>,
    },
    /// A warning of the client itself.
    Note(String),
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LineFields {
    #[serde(rename = "type")]
    kind: String,
    thread_id: String,
    item: Value,
    error: Option<ItemText>,
    message: String,
    usage: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ItemText {
    message: String,
}

pub(super) fn read(text: &str) -> Line {
    if text.trim().is_empty() {
        return Line::Ignored;
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Line::NotJson };
    let kind = value["type"].as_str().unwrap_or("none").to_owned();
    // The type is read before the fields, so that a warning can name it.
    let Ok(shape) = serde_json::from_value::<LineFields>(value) else { return unknown(&kind) };
    match shape.kind.as_str() {
        "thread.started" => Line::Thread(shape.thread_id),
        "turn.started" => Line::Begins,
        "item.started" | "item.updated" => Line::Doing(parse_item(&shape.item)),
        "item.completed" => Line::Done(parse_item(&shape.item)),
        "turn.completed" => Line::Completed(parse_usage(&shape.usage)),
        "turn.failed" => Line::Failed(shape.error.unwrap_or_default().message),
        "error" => Line::Error(shape.message),
        _ => unknown(&kind),
    }
}

fn parse_item(value: &Value) -> Item {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    match value["type"].as_str().unwrap_or_default() {
        "agent_message" => Item::Message(text("text")),
        "command_execution" => Item::Command {
            command: text("command"),
            status: text("status"),
            output: text("aggregated_output"),
        },
        "file_change" => {
            let paths = list_texts(&value["changes"], |change| change["path"].as_str());
            Item::Files { paths, status: text("status") }
        }
        "mcp_tool_call" => {
            // The form in which permission rules name MCP tools.
            let name = format!("mcp__{}__{}", text("server"), text("tool"));
            let failed = value["error"]["message"].as_str().map(str::to_owned);
            Item::Tool { name, failed }
        }
        "web_search" => Item::Tool { name: format!("WebSearch({})", text("query")), failed: None },
        "collab_tool_call" => {
            let threads = list_texts(&value["receiver_thread_ids"], Value::as_str);
            Item::Agents { tool: text("tool"), threads }
        }
        "error" => Item::Note(text("message")),
        _ => Item::Other,
    }
}

fn list_texts(list: &Value, part: fn(&Value) -> Option<&str>) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(part).map(str::to_owned).collect()
}

fn unknown(kind: &str) -> Line {
    // In bytes, because the type goes into a warning and may be of any length.
    const SHOWN: usize = 60;
    Line::Unknown(kind[..kind.floor_char_boundary(SHOWN)].to_owned())
}

#[cfg(test)]
mod tests;
