//! Events of a streamed reply.

use serde_json::Value;

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) data: Value,
}

/// Id and model of one reply. The id is a hash of the request, so the same request always gets the
/// same reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplyId {
    /// Sixteen hexadecimal digits.
    pub(super) id: String,
    pub(super) model: String,
}
