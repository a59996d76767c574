//! The state language: how the end of a visit changes an agent.
//!
//! `states` reads the text of a finished turn, `transition` chooses its tags, and `tags` takes
//! them. `work` returns what the turn of a state runs or sends. `limits` applies `max_visits`,
//! `ralph` ends an iteration of a loop, `revival` repeats a failed visit, `waking` ends a wait for
//! a time, `joins` one for workers, `asking` one for an answer, and `alarm` any wait whose time is
//! up. The agents themselves
//! are data in [`crate::agent`]; documents of steps are in [`crate::steps`].
//! Nothing here changes a run: all functions add events to a decision.

pub(crate) mod alarm;
pub(crate) mod asking;
pub(crate) mod blocked;
pub(crate) mod joins;
mod limits;
pub(crate) mod ralph;
pub(crate) mod revival;
pub(crate) mod session_backend;
pub(crate) mod states;
pub(crate) mod tags;
pub(crate) mod transition;
pub(crate) mod transition_context;
pub(crate) mod waking;
pub(crate) mod work;
