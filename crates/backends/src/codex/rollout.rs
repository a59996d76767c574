//! The rollout: the file in which the client keeps a thread.
//!
//! Raymond only reads this file, for the tokens of every request, the types of errors and the usage
//! limits, which the stream does not contain. The client sorts the files by the day on which the
//! thread began, and the id of the thread contains that day.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use raymond_core::prices::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::process::{StreamEvent, TRANSCRIPT_MAX, Transcript};

/// The file of a thread, read from the last position.
#[derive(Debug)]
pub(super) struct Rollout {
    sessions: PathBuf,
    thread: String,
    file: Option<Transcript>,
    size: Size,
}

/// Whether the file can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Readable,
    TooLarge,
    /// A read error occurred.
    Unreadable,
}

/// An entry of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// The thread was branched from another thread.
    Branched {
        from: String,
    },
    Begins {
        turn: String,
    },
    /// The model of the following entries.
    Model(String),
    /// Instructions of the client to the model.
    Instructed(String),
    /// The model calls a tool, so another request will follow.
    Calls,
    /// The model receives a tool result.
    Returned,
    /// The conversation was compacted, and the turn continues.
    Compacted,
    /// A request was answered. The usage is `None` if its counts are not numbers.
    Used {
        root_turn: Option<String>,
        usage: Option<Usage>,
    },
    /// A reached usage limit, and when it ends in seconds since 1970.
    Limited {
        resets_at: u64,
    },
    Ends {
        error: Option<RolloutError>,
    },
    /// The turn was aborted.
    BrokenOff,
    /// A damaged entry, which may have been any of these.
    Unreadable,
    Other,
}

/// An error by its type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RolloutError {
    pub(super) kind: String,
    /// The HTTP status, if there is one.
    pub(super) status: Option<u16>,
}

impl Rollout {
    pub(super) fn new(home: &Path, thread: &str) -> Self {
        Self {
            sessions: home.join("sessions"),
            thread: thread.to_owned(),
            file: None,
            size: Size::Readable,
        }
    }

    /// Emits the entries that were written since the last call.
    pub(super) fn read_new(&mut self, emit: &mut dyn FnMut(Entry)) {
        // The client creates the file some time after its start, so each call searches again.
        if self.file.is_none() && self.size == Size::Readable {
            self.file = self.find().and_then(|path| Transcript::open(&path).ok());
        }
        let Some(file) = &mut self.file else { return };
        match file.length() {
            Ok(..=TRANSCRIPT_MAX) => {}
            Ok(_) => {
                // Reading it all would keep the client waiting, and its cost counts as unknown
                // instead.
                (self.file, self.size) = (None, Size::TooLarge);
                return;
            }
            Err(_) => {
                (self.file, self.size) = (None, Size::Unreadable);
                return;
            }
        }
        let mut emit = |event| {
            if let StreamEvent::Line(line) = event {
                emit(parse_entry(&line));
            }
        };
        if file.read_on(&mut emit).is_err() {
            (self.file, self.size) = (None, Size::Unreadable);
            return;
        }
        // A complete JSON object has no proper prefix that is also one, so the last entry can be
        // read even if the client was ended before it wrote the newline.
        file.take_last_if(|line| serde_json::from_slice::<Value>(line).is_ok(), &mut emit);
    }

    /// Whether the file exists and can be read. A file over the size limit of transcripts cannot.
    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Whether the file was read in part and cannot be read further.
    pub(super) fn is_torn(&self) -> bool {
        self.size != Size::Readable
    }

    /// Whether the last entry is incomplete. It may have been a request.
    pub(super) fn has_partial_entry(&self) -> bool {
        self.file.as_ref().is_some_and(Transcript::has_partial_line)
    }

    fn find(&self) -> Option<PathBuf> {
        // The day may come from another clock or time zone, so the days before and after are
        // searched, too.
        let end = format!("-{}.jsonl", self.thread);
        let is_it = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(&end));
        let days = [0, -1, 1].into_iter().filter_map(|days| day_of(&self.thread, days));
        let files = days.filter_map(|day| fs::read_dir(self.sessions.join(day)).ok()).flatten();
        files.filter_map(Result::ok).map(|file| file.path()).find(is_it)
    }
}

/// Returns the directory of the day on which a thread began, shifted by `days`.
fn day_of(thread: &str, days: i64) -> Option<String> {
    // The first 48 bits of the id are milliseconds since 1970.
    let digits: String = thread.chars().filter(char::is_ascii_hexdigit).take(12).collect();
    let moment = Timestamp::from_millisecond(i64::from_str_radix(&digits, 16).ok()?).ok()?;
    let day = moment.to_zoned(TimeZone::UTC).checked_add(days.days()).ok()?;
    Some(day.strftime("%Y/%m/%d").to_string())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EntryFields {
    #[serde(rename = "type")]
    kind: String,
    payload: Value,
}

fn parse_entry(line: &[u8]) -> Entry {
    // The newline of a record that was already read without it.
    if line.trim_ascii().is_empty() {
        return Entry::Other;
    }
    let Ok(EntryFields { kind, payload }) = serde_json::from_slice(line) else {
        return Entry::Unreadable;
    };
    let text = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
    match (kind.as_str(), payload["type"].as_str().unwrap_or_default()) {
        ("session_meta", _) => match text("forked_from_id") {
            from if from.is_empty() => Entry::Other,
            from => Entry::Branched { from },
        },
        ("compacted", _) => Entry::Compacted,
        ("turn_context", _) => Entry::Model(text("model")),
        ("token_usage_record", _) => {
            let root = payload["root_turn_id"].as_str().or_else(|| payload["turn_id"].as_str());
            Entry::Used {
                root_turn: root.map(str::to_owned),
                usage: parse_usage(&payload["usage"]),
            }
        }
        (
            "response_item",
            "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call",
        ) => Entry::Calls,
        (
            "response_item",
            "function_call_output" | "custom_tool_call_output" | "tool_search_output",
        ) => Entry::Returned,
        ("response_item", "message") if payload["role"] == "developer" => {
            let texts = payload["content"].as_array().into_iter().flatten();
            let texts = texts.filter_map(|part| part["text"].as_str());
            Entry::Instructed(texts.collect::<Vec<_>>().join("\n"))
        }
        ("event_msg", "task_started") => Entry::Begins { turn: text("turn_id") },
        ("event_msg", "token_count") => parse_limits(&payload["rate_limits"]),
        ("event_msg", "task_complete") => Entry::Ends { error: parse_problem(&payload["error"]) },
        ("event_msg", "turn_aborted") => Entry::BrokenOff,
        _ => Entry::Other,
    }
}

/// Returns the tokens of a request, or `None` unless they are whole numbers.
///
/// Tokens that were read from or written to the cache are part of the input. If they exceed the
/// input, they cannot be part of it, and the whole input counts in addition.
pub(super) fn parse_usage(value: &Value) -> Option<Usage> {
    let cached = |key: &str| match &value[key] {
        Value::Null => Some(0),
        count => count.as_u64(),
    };
    let (cache_read, cache_write) =
        (cached("cached_input_tokens")?, cached("cache_write_input_tokens")?);
    let read = value["input_tokens"].as_u64()?;
    let input = read.checked_sub(cache_read.saturating_add(cache_write)).unwrap_or(read);
    Some(Usage { input, output: value["output_tokens"].as_u64()?, cache_write, cache_read })
}

/// Returns the reached limit that ends last.
fn parse_limits(value: &Value) -> Entry {
    const ALL: f64 = 100.0;
    let windows = [&value["primary"], &value["secondary"]].into_iter();
    let reached =
        windows.filter(|window| window["used_percent"].as_f64().is_some_and(|p| p >= ALL));
    let resets = reached.filter_map(|window| window["resets_at"].as_u64()).max();
    resets.map_or(Entry::Other, |resets_at| Entry::Limited { resets_at })
}

/// Returns the type of an error, which is a word or a word with an HTTP status.
fn parse_problem(error: &Value) -> Option<RolloutError> {
    let info = &error["codex_error_info"];
    if let Some(kind) = info.as_str() {
        return Some(RolloutError { kind: kind.to_owned(), status: None });
    }
    let (kind, more) = info.as_object()?.iter().next()?;
    let status = more["http_status_code"].as_u64().and_then(|status| u16::try_from(status).ok());
    Some(RolloutError { kind: kind.clone(), status })
}

#[cfg(test)]
mod tests;
