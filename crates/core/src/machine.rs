//! The state language: agents, their conversations, their return stacks.
//!
//! [`agent`] is what an agent is; `transition` is what a transition does to it, and `ralph` what the end of
//! an iteration does.

pub mod agent;
mod limits;
pub(crate) mod ralph;
pub mod session;
pub(crate) mod session_backend;
pub(crate) mod transition;
pub(crate) mod transition_context;

pub use agent::{Agent, AgentStatus, Frame, PendingTransition, Visit};
pub use session::{Session, SessionPlan};
