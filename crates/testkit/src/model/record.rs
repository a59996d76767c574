//! The log of all requests and their outcomes.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use raymond_core::prices::Usage;
use serde::Serialize;
use serde_json::Value;

use super::api::Api;
use super::conversation::ConversationItem;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedRequest {
    /// The number of the request, from 0.
    pub index: usize,
    pub api: Api,
    /// The method, such as `POST`.
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null if it is empty or not JSON.
    pub body: Value,
    pub model: String,
    /// The client's system prompt.
    pub system: String,
    /// The conversation that the model saw.
    pub conversation: Vec<ConversationItem>,
    pub tools: Vec<String>,
    pub outcome: RequestOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    /// The reply is not complete yet.
    Open,
    /// A message was delivered completely, with this usage.
    Answered(Usage),
    /// An error or another reply without a message, with this status.
    Status(u16),
    /// Either side closed the connection before the end.
    Broken,
}

impl RecordedRequest {
    /// Returns a header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the usage of the reply; zero without a complete reply.
    pub fn usage(&self) -> Usage {
        match self.outcome {
            RequestOutcome::Answered(usage) => usage,
            RequestOutcome::Open | RequestOutcome::Status(_) | RequestOutcome::Broken => {
                Usage::default()
            }
        }
    }

    /// Returns whether a message was delivered completely.
    pub const fn is_answered(&self) -> bool {
        matches!(self.outcome, RequestOutcome::Answered(_))
    }
}

/// All requests, and an optional file that receives each one after its reply.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestLog {
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    log: Option<Arc<File>>,
}

impl RequestLog {
    pub(super) fn new(log: Option<File>) -> Self {
        Self { requests: Arc::default(), log: log.map(Arc::new) }
    }

    pub(super) fn all(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a request. The entry must be settled; if it is dropped first, the request counts as
    /// broken.
    pub(super) fn enter(&self, mut request: RecordedRequest) -> Entry {
        let mut all = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let index = all.len();
        request.index = index;
        all.push(request);
        // Broken until settled: hyper drops the future without a call when the client leaves.
        Entry { record: self.clone(), index, outcome: RequestOutcome::Broken }
    }

    fn set(&self, index: usize, outcome: RequestOutcome) {
        let mut all = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        all[index].outcome = outcome;
    }

    fn log(&self, index: usize) {
        if let Some(mut log) = self.log.as_deref() {
            let all = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            // A log that cannot be written must not change what a client sees.
            serde_json::to_string(&all[index]).map(|line| writeln!(log, "{line}")).ok();
        }
    }
}

/// A request without a complete reply yet. If it is dropped unsettled, its connection broke.
#[derive(Debug)]
pub(super) struct Entry {
    record: RequestLog,
    index: usize,
    outcome: RequestOutcome,
}

impl Entry {
    /// Sets the outcome. Called before the last byte is sent, so that a client with a complete
    /// reply finds it recorded.
    pub(super) fn settle(&mut self, outcome: RequestOutcome) {
        self.outcome = outcome;
        self.record.set(self.index, outcome);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.record.set(self.index, self.outcome);
        self.record.log(self.index);
    }
}
