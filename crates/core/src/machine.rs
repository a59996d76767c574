//! The state language: agents, their conversations, their return stacks.
//!
//! [`agent`] is what an agent is; `moves` is what a transition does to it, and `ralph` what the end of
//! an iteration does.

pub mod agent;
pub(crate) mod crossing;
mod limits;
pub(crate) mod mover;
pub(crate) mod moves;
pub(crate) mod ralph;
pub mod session;

pub use agent::{Agent, Frame, Kept, Standing, Visit};
pub use session::{Session, SessionPlan};
