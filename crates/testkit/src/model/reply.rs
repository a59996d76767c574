//! The reply of a model to one request: plain data, the same for every API.

use std::time::Duration;

use raymond_core::prices::Usage;
use serde_json::Value;

/// The usage of a message without a `usage` line, in tokens. Round numbers make costs in tests easy
/// to check.
pub const DEFAULT_USAGE: Usage = Usage { input: 1000, output: 100, cache_write: 0, cache_read: 0 };

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    /// Waits before the reply, in order.
    pub(super) pauses: Vec<Pause>,
    pub(super) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pause {
    Latency(Duration),
    /// Waits until this file exists.
    Gate(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Send(Message),
    Fail(Failure),
    /// Closes the connection without a byte.
    Drop,
    /// Sends nothing until the client disconnects.
    Hang,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub(super) blocks: Vec<Block>,
    pub(super) stop: StopReason,
    pub(super) usage: Usage,
    /// Closes the connection after this many events.
    pub(super) cut: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    Thinking(String),
    Text(String),
    Tool { name: String, input: Value },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    Ended,
    Tool,
    Refused,
}

/// An error of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub status: u16,
    /// The API's name for the error; `None` means the default of the status.
    pub kind: Option<String>,
    pub message: String,
    /// Further headers, such as `retry-after`.
    pub headers: Vec<(String, String)>,
}

impl Failure {
    pub fn new(status: u16) -> Self {
        let message = format!("the script says {status}");
        Self { status, kind: None, message, headers: Vec::new() }
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn with_kind(mut self, kind: &str) -> Self {
        self.kind = Some(kind.to_owned());
        self
    }

    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
}
