//! The language of steps, proved by a second interpreter.
//!
//! [`reference`] is written from the rules alone: plain recursion over JSON, with paths, conditions and
//! templates of its own. [`random`] makes up documents, [`replies`] what their programs and agents do.
//! [`drive`] takes the real core through the same document, in any order of events, with a backend or a
//! caller; [`agree`] compares what was run, what was asked, and what was left.

pub mod agree;
#[cfg(test)]
mod calls;
pub mod crashes;
pub mod drive;
pub mod random;
pub mod random_replies;
pub mod reference;

pub use agree::{agree, shrink};
