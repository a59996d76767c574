//! A request as a door hands it in: what its caller wrote, and what others said who were asked for it.

use std::collections::BTreeMap;

use raymond_core::crayfish::{Problem, Request, reading};
use serde_json::Value as Json;

/// A request, and answers that are still texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawRequest {
    /// The request.
    pub request: Json,
    /// What models said, by the ids of the requests: each is one JSON value, or not valid, whatever
    /// the schema of its step.
    pub said: BTreeMap<String, String>,
}

impl From<Json> for RawRequest {
    fn from(request: Json) -> Self {
        Self { request, said: BTreeMap::new() }
    }
}

impl RawRequest {
    /// The request with all answers; otherwise what is wrong with it.
    pub(super) fn read(self) -> Result<Request, Vec<Problem>> {
        let mut request = Request::parse(self.request)?;
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

/// What is wrong with an answer that cannot be read.
pub(crate) fn unread(why: &reading::Unreadable) -> Problem {
    Problem::of_value("", format!("it is not JSON: {why}"))
}
