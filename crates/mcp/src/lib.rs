//! The door for MCP clients: the tool `crayfish`, the records of runs, and a prompt that teaches.
//!
//! [`stdio`] and [`http`] carry the protocol, [`Server`] answers it, in both of its eras. What is
//! answered comes from a [`Host`]: this crate starts no program and reads no journal. It is small,
//! because what it stands on takes long to build.

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

pub use host::Host;
pub use rounds::ASKS;
pub use server::Server;

/// The longest message that is read, in bytes.
pub const LONGEST: usize = 64 << 20;

#[cfg(test)]
mod tests;
