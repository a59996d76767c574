//! The state language: how the end of a visit changes an agent.
//!
//! `transition` takes the tags of a state, `ralph` ends an iteration of a loop, and `limits`
//! applies `max_visits`. The agents themselves are data in [`crate::agent`]; documents of steps are
//! in [`crate::steps`]. Nothing here changes a run: all functions add events to a decision.

pub(crate) mod blocked;
mod limits;
pub(crate) mod ralph;
pub(crate) mod session_backend;
pub(crate) mod transition;
pub(crate) mod transition_context;
