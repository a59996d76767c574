//! Table of the supported APIs; each has its own file.

use serde::Serialize;
use serde_json::{Value, json};

use super::conversation::ParsedRequest;
use super::event::{Event, ReplyId};
use super::reply::{Failure, Message};
use super::{messages, responses};

/// The endpoint of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic: create a message.
    Messages,
    /// Anthropic: count the tokens of a message.
    CountTokens,
    /// `OpenAI`: create a response.
    Responses,
    /// Any other path.
    Unknown,
}

impl Api {
    /// Finds the endpoint by method and path, without the query.
    pub(super) fn of(method: &str, path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        match (method, path) {
            ("POST", "/v1/messages") => Self::Messages,
            ("POST", "/v1/messages/count_tokens") => Self::CountTokens,
            ("POST", "/v1/responses") => Self::Responses,
            _ => Self::Unknown,
        }
    }

    /// Returns whether a model answers this endpoint.
    pub const fn is_answered_by_model(self) -> bool {
        match self {
            Self::Messages | Self::Responses => true,
            Self::CountTokens | Self::Unknown => false,
        }
    }

    pub(super) fn read(self, body: &Value) -> ParsedRequest {
        match self {
            Self::Messages | Self::CountTokens => messages::read(body),
            Self::Responses => responses::read(body),
            Self::Unknown => ParsedRequest::default(),
        }
    }

    pub(super) fn events(self, message: &Message, reply_id: &ReplyId) -> Vec<Event> {
        match self {
            Self::Messages => messages::events(message, reply_id),
            Self::Responses => responses::events(message, reply_id),
            Self::CountTokens | Self::Unknown => Vec::new(),
        }
    }

    pub(super) fn whole(self, message: &Message, reply_id: &ReplyId) -> Value {
        match self {
            Self::Messages => messages::whole(message, reply_id),
            Self::Responses => responses::whole(message, reply_id),
            Self::CountTokens => json!({ "input_tokens": message.usage.input }),
            Self::Unknown => Value::Null,
        }
    }

    pub(super) fn error(self, failure: &Failure) -> Value {
        match self {
            Self::Messages | Self::CountTokens | Self::Unknown => messages::error(failure),
            Self::Responses => responses::error(failure),
        }
    }
}
