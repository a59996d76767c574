//! One line of the client's stream.
//!
//! The type of a line may be its last key, so it is parsed twice: once for the type, then for what
//! that type holds. A line of another type, or one that is no JSON at all, is nothing to act on; it
//! stays in the transcript.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::surrogates::replace_lone_surrogates;
use super::wire::{
    Assistant, Compaction, Conclusion, Head, Init, RateLimit, Refusal, Retry, Task, Tasks, User,
};

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    /// The client begins a round.
    Init(Init),
    /// A block of a message.
    Assistant(Assistant),
    /// What tools said, or what the client added for the model.
    User(User),
    /// A request failed, and is tried again.
    Retry(Retry),
    /// The model refused, and nobody else is asked.
    Refusal(Refusal),
    /// How much of a usage limit is used.
    RateLimit(RateLimit),
    /// A task was started.
    TaskStarted(Task),
    /// A task changed.
    TaskUpdated(Task),
    /// A task is over.
    TaskEnded(Task),
    /// These tasks run in the background.
    Tasks(Tasks),
    /// The conversation was summed up.
    Compacted(Compaction),
    /// A round is over.
    Result(Box<Conclusion>),
    /// Of no interest.
    Ignored,
    /// Of a type that is not known.
    Unknown {
        /// Which.
        kind: String,
    },
    /// Not JSON.
    NotJson,
}

/// Types that were seen, or that the client documents, and that nothing depends on.
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

/// Reads a line.
pub(super) fn read(text: &str) -> Line {
    if text.trim().is_empty() {
        return Line::Ignored;
    }
    let text = &*replace_lone_surrogates(text);
    let Ok(head) = serde_json::from_str::<Head>(text) else {
        return match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => unknown("none"),
            Err(_) => Line::NotJson,
        };
    };
    let kind = head.kind.as_deref().unwrap_or("none");
    let line = match (kind, head.subtype.as_deref().unwrap_or_default()) {
        ("assistant", _) => parse_as(text).map(Line::Assistant),
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
    const SHOWN: usize = 60;
    Line::Unknown { kind: kind[..kind.floor_char_boundary(SHOWN)].to_owned() }
}

#[cfg(test)]
mod tests;
