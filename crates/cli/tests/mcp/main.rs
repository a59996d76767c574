//! The real server and real MCP clients: the Inspector and the client of the Python library, in
//! both eras of the protocol, over streams and over HTTP.
//!
//! `cargo xtask test mcp` installs the clients of `tests/mcp` and runs these tests. They use no
//! network.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod ends;
mod inspector;
mod python;
mod stage;
