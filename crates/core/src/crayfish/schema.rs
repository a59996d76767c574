//! JSON Schemas of what callers and authors write and read: documents, requests, replies.
//!
//! They are written by hand for editors and for tool descriptions: plain types, optional means
//! absent, nothing is nullable. They describe the shape; what depends on other places (ids that
//! are taken, locals that are not bound) only [`Document::parse`](super::Document::parse) tells.

/// The schema of a document.
pub const DOCUMENT: &str = include_str!("schema/document.json");

/// The schema of a request.
pub const REQUEST: &str = include_str!("schema/request.json");

/// The schema of a reply.
pub const REPLY: &str = include_str!("schema/reply.json");

#[cfg(test)]
mod tests;
