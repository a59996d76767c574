//! What a model does with one request. Pure data, the same for every API.

use std::time::Duration;

use raymond_core::prices::Usage;
use serde_json::Value;

/// What a message costs when the script does not say.
pub const DEFAULT_USAGE: Usage = Usage { input: 1000, output: 100, cache_write: 0, cache_read: 0 };

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    /// What comes before it, in order.
    pub(super) pauses: Vec<Pause>,
    pub(super) action: Action,
}

/// What a reply waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pause {
    Latency(Duration),
    /// Until this file exists.
    Gate(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Send(Message),
    Fail(Failure),
    /// The connection is closed without a byte.
    Drop,
    /// Nothing, until the client goes.
    Hang,
}

/// An assistant message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub(super) blocks: Vec<Block>,
    pub(super) stop: StopReason,
    pub(super) usage: Usage,
    /// After so many events the connection is closed.
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
    /// The HTTP status.
    pub status: u16,
    /// The API's word for it; none is the usual one of the status.
    pub kind: Option<String>,
    /// For people.
    pub message: String,
    /// Further headers, `retry-after` among them.
    pub headers: Vec<(String, String)>,
}

impl Failure {
    /// An error with this status.
    pub fn new(status: u16) -> Self {
        let message = format!("the script says {status}");
        Self { status, kind: None, message, headers: Vec::new() }
    }

    /// The same, with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same, with another word for it.
    #[must_use]
    pub fn with_kind(mut self, kind: &str) -> Self {
        self.kind = Some(kind.to_owned());
        self
    }

    /// The same, said differently.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
}
