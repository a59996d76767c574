//! The rules of a run, one row each: what follows from an input, and what the run is then.
//!
//! [`play`] is the stage: it says lines for agents and shows what became of them. Every other file
//! is one topic of the specification.

mod applying;
mod arbitrary;
mod backends;
mod batching;
mod crashes;
mod failures;
mod faults;
mod forks;
mod holding;
mod journal;
mod limits;
mod money;
pub(crate) mod play;
mod ralph;
mod replaying;
mod resuming;
pub(crate) mod show;
mod slots;
pub(crate) mod steps;
mod stopping;
mod transitions;
