//! The envelope of a call: requests and replies, the same for the command line and MCP.

pub mod reply;
pub mod request;

pub use reply::{AgentRequest, CallFailure, CallOutcome, CallReply};
pub use request::{CallRequest, MOST_SCHEMA_PATHS};
