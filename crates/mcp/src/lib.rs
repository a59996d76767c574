//! The MCP server: the tool `crayfish`, the records of runs, and a prompt that teaches the
//! language.
//!
//! [`stdio`] and [`http`] transport the protocol, and [`Server`] answers it, in both protocol
//! versions. The answers come from a [`ToolHost`]: this crate starts no program and reads no
//! journal. It is small, because its dependencies take long to build.

mod body;
mod calls;
mod forms;
pub mod host;
pub mod http;
mod lines;
mod load;
mod message;
mod prompt;
mod records;
mod rounds;
mod seal;
mod server;
pub mod stdio;
mod tool;

pub use host::ToolHost;
pub use rounds::ASKS;
pub use server::Server;

/// The longest message that is read, in bytes: 64 MiB.
pub const LONGEST: usize = 64 << 20;

#[cfg(test)]
mod tests;
