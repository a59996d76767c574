//! A request as it arrives: the caller's JSON, and answers of models that are still text.
//!
//! Hosts that ask a model themselves pass its raw answer here, so that only one place decides
//! whether it is valid JSON.

use std::collections::BTreeMap;

use raymond_core::crayfish::{CallRequest, Problem, reading};
use serde_json::Value as Json;

use crate::schemas::unread;

/// A request with answers that are still text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawRequest {
    pub request: Json,
    /// The answers of models, by request id. An answer that is not one JSON value is invalid for
    /// every schema.
    pub said: BTreeMap<String, String>,
}

impl From<Json> for RawRequest {
    fn from(request: Json) -> Self {
        Self { request, said: BTreeMap::new() }
    }
}

impl RawRequest {
    /// Parses the request with all answers, or returns its problems.
    pub(super) fn read(self) -> Result<CallRequest, Vec<Problem>> {
        let mut request = CallRequest::parse(self.request)?;
        for (name, text) in self.said {
            let output = reading::read_text(text.trim()).unwrap_or_else(|why| {
                request.unread.insert(name.clone(), unread(&why));
                Json::String(text)
            });
            request.agent_outputs.insert(name, output);
        }
        Ok(request)
    }
}
