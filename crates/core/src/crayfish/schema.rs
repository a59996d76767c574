//! JSON Schemas for documents, requests and replies.
//!
//! They are written by hand for editors and tool descriptions: plain types, optional means absent,
//! nothing is nullable. They describe the shape only. Rules between places, such as unique ids or
//! bound locals, are checked by [`Document::parse`](super::Document::parse).

pub const DOCUMENT: &str = include_str!("schema/document.json");

pub const REQUEST: &str = include_str!("schema/request.json");

pub const REPLY: &str = include_str!("schema/reply.json");

#[cfg(test)]
mod tests;
