//! The targets of the fuzzer, one file each.

pub mod archive;
pub mod claude;
pub mod codex;
pub mod document;
pub mod frontmatter;
pub mod inbox;
pub mod journal;
pub mod mcp;
pub mod replies;
pub mod request;
pub mod scanner;
pub mod schema;
mod stream;

use crate::Target;

pub const ALL: [&Target; 12] = [
    &archive::TARGET,
    &claude::TARGET,
    &codex::TARGET,
    &document::TARGET,
    &frontmatter::TARGET,
    &inbox::TARGET,
    &journal::TARGET,
    &mcp::TARGET,
    &replies::TARGET,
    &request::TARGET,
    &scanner::TARGET,
    &schema::TARGET,
];
