//! Requests of the HTTP server, which hyper reads.

use std::error::Error;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};

// Far above the prompts of any test; a broken client must not fill the memory.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// The reason why the server closes a connection.
pub(super) type Closed = Box<dyn Error + Send + Sync>;

/// A request that has arrived completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path with the query.
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl Request {
    /// Waits for the whole body of a request.
    pub(super) async fn read(request: hyper::Request<Incoming>) -> Result<Self, Closed> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY_BYTES).collect().await?.to_bytes();
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Ok(Self {
            method: head.method.to_string(),
            path: head.uri.to_string(),
            headers: head.headers.iter().map(header).collect(),
            body,
        })
    }
}
