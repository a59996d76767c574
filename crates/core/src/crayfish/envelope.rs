//! What a caller sends, and what it gets back: the same envelope at every door.

pub mod reply;
pub mod request;

pub use reply::{AgentRequest, Failure, Outcome, Reply};
pub use request::{MOST_SCHEMA_PATHS, Request};
