//! The state language: agents, their conversations, their return stacks.
//!
//! [`agent`] is what an agent is; `transition` is what a transition does to it, and `ralph` what the end of
//! an iteration does.

pub(crate) mod blocked;
mod limits;
pub(crate) mod ralph;
pub(crate) mod session_backend;
pub(crate) mod transition;
pub(crate) mod transition_context;
