//! Parsing of one line of the client's stream.
//!
//! The type of a line may be its last key, so a line is parsed twice: for its type, then for the
//! fields of that type. Lines of unknown types and lines that are not JSON cause a warning and stay
//! in the transcript.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::lone_surrogates::replace_lone_surrogates;
use super::wire::{
    Assistant, Compaction, Conclusion, Head, Init, RateLimit, Refusal, Retry, Task, Tasks, User,
};

/// A parsed line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    /// The client begins a round.
    Init(Init),
    /// A block of a message.
    Assistant(Assistant),
    /// Tool results, or text that the client added for the model.
    User(User),
    /// A request failed and is retried.
    Retry(Retry),
    /// The model refused, and the client has no fallback model.
    Refusal(Refusal),
    /// The state of a usage limit.
    RateLimit(RateLimit),
    TaskStarted(Task),
    TaskUpdated(Task),
    TaskEnded(Task),
    /// The tasks that run in the background.
    Tasks(Tasks),
    /// The conversation was compacted.
    Compacted(Compaction),
    /// A round has ended.
    Result(Box<Conclusion>),
    /// A known type that nothing depends on.
    Ignored,
    Unknown {
        kind: String,
    },
    NotJson,
}

/// Types that were observed or that the client documents, but that nothing depends on.
const IGNORED: [&str; 11] = [
    "stream_event",
    "tool_progress",
    "tool_use_summary",
    "auth_status",
    "prompt_suggestion",
    "attachment",
    "control_request",
    "control_response",
    "control_cancel_request",
    "keep_alive",
    "progress",
];

pub(super) fn read(text: &str) -> Line {
    if text.trim().is_empty() {
        return Line::Ignored;
    }
    let text = &*replace_lone_surrogates(text);
    let Ok(head) = serde_json::from_str::<Head>(text) else {
        return match serde_json::from_str::<IgnoredAny>(text) {
            // JSON without a usable type, for example a number.
            Ok(_) => unknown("none"),
            Err(_) => Line::NotJson,
        };
    };
    let kind = head.kind.as_deref().unwrap_or("none");
    let line = match (kind, head.subtype.as_deref().unwrap_or_default()) {
        ("assistant", _) => parse_as(text).map(Line::Assistant),
        // A user line without readable fields still means that the client sent something to the
        // model.
        ("user", _) => Some(Line::User(parse_as(text).unwrap_or_default())),
        ("result", _) => parse_as(text).map(|result| Line::Result(Box::new(result))),
        ("rate_limit_event", _) => parse_as(text).map(Line::RateLimit),
        ("system", "init") => parse_as(text).map(Line::Init),
        ("system", "api_retry") => parse_as(text).map(Line::Retry),
        ("system", "model_refusal_no_fallback") => parse_as(text).map(Line::Refusal),
        ("system", "task_started") => parse_as(text).map(Line::TaskStarted),
        ("system", "task_updated") => parse_as(text).map(Line::TaskUpdated),
        ("system", "task_notification") => parse_as(text).map(Line::TaskEnded),
        ("system", "background_tasks_changed") => parse_as(text).map(Line::Tasks),
        ("system", "compact_boundary") => parse_as(text).map(Line::Compacted),
        ("system", _) => Some(Line::Ignored),
        (ignored, _) if IGNORED.contains(&ignored) => Some(Line::Ignored),
        _ => None,
    };
    line.unwrap_or_else(|| unknown(kind))
}

fn parse_as<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

fn unknown(kind: &str) -> Line {
    // In bytes, because the type goes into a warning and may be of any length.
    const SHOWN: usize = 60;
    Line::Unknown { kind: kind[..kind.floor_char_boundary(SHOWN)].to_owned() }
}

#[cfg(test)]
mod tests;
