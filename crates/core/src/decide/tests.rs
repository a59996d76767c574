//! Rules of `decide` and `apply`: the events that follow from an input, and the run afterwards.
//!
//! [`play`] answers for scripted agents and shows the result. Every other file covers one topic of
//! the specification.

mod applying;
mod arbitrary;
mod backends;
mod batching;
mod complete_effects;
mod crashes;
mod failures;
mod faults;
mod forks;
mod holding;
mod joins;
mod journal;
mod limits;
mod money;
pub(crate) mod play;
mod questions;
mod ralph;
mod replaying;
mod resuming;
pub(crate) mod show;
mod slots;
pub(crate) mod steps;
mod stopping;
mod transitions;
mod waits;
