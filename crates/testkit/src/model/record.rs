//! Every request that arrived, and what became of it.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use raymond_core::prices::Usage;
use serde::Serialize;
use serde_json::Value;

use super::api::Api;
use super::conversation::ConversationItem;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedRequest {
    /// Its place among all requests, from 0.
    pub index: usize,
    /// What was asked for.
    pub api: Api,
    /// Its method: `POST`, …
    pub method: String,
    /// Its path, with the query.
    pub path: String,
    /// Its headers; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body; null when that is empty or no JSON.
    pub body: Value,
    /// The model that is to answer.
    pub model: String,
    /// What the client tells the model about itself and its surroundings.
    pub system: String,
    /// What the model was shown.
    pub conversation: Vec<ConversationItem>,
    /// The tools that the model may call.
    pub tools: Vec<String>,
    /// How it was answered.
    pub outcome: RequestOutcome,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    /// It is being answered.
    Open,
    /// A message was delivered to its end, and cost this.
    Answered(Usage),
    /// An error, or something else than a message, with this status.
    Status(u16),
    /// The connection was closed before the end, by either side.
    Broken,
}

impl RecordedRequest {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// What the reply cost; nothing when there was none.
    pub fn usage(&self) -> Usage {
        match self.outcome {
            RequestOutcome::Answered(usage) => usage,
            RequestOutcome::Open | RequestOutcome::Status(_) | RequestOutcome::Broken => {
                Usage::default()
            }
        }
    }

    /// Whether a message was delivered to its end.
    pub const fn is_answered(&self) -> bool {
        matches!(self.outcome, RequestOutcome::Answered(_))
    }
}

/// The list, and a file that gets every request once it is answered.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestLog {
    seen: Arc<Mutex<Vec<RecordedRequest>>>,
    log: Option<Arc<File>>,
}

impl RequestLog {
    pub(super) fn new(log: Option<File>) -> Self {
        Self { seen: Arc::default(), log: log.map(Arc::new) }
    }

    pub(super) fn all(&self) -> Vec<RecordedRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a request; whatever holds the entry must say what became of it.
    pub(super) fn enter(&self, mut seen: RecordedRequest) -> Entry {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let index = all.len();
        seen.index = index;
        all.push(seen);
        Entry { record: self.clone(), index, outcome: RequestOutcome::Broken }
    }

    fn set(&self, index: usize, outcome: RequestOutcome) {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all[index].outcome = outcome;
    }

    fn log(&self, index: usize) {
        if let Some(mut log) = self.log.as_deref() {
            let all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            // A log that cannot be written must not change what a client sees.
            serde_json::to_string(&all[index]).map(|line| writeln!(log, "{line}")).ok();
        }
    }
}

/// A request that is being answered. Dropped without a word, its connection broke.
#[derive(Debug)]
pub(super) struct Entry {
    record: RequestLog,
    index: usize,
    outcome: RequestOutcome,
}

impl Entry {
    /// Says what becomes of the request. A client that has its reply must find this done.
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
