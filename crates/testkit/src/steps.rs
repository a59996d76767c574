//! Tests of the step language with a second interpreter.
//!
//! [`reference`] is written from the rules alone: plain recursion over JSON, with its own paths,
//! conditions and templates. [`random`] generates documents, [`random_replies`] the results of
//! their programs and agents. [`drive`] runs the real core on the same document, with events in any
//! order, with a backend or a caller. [`agree`] compares programs, questions and results.
//! [`crashes`] does the same on a simulated machine with faults.

pub mod agree;
#[cfg(test)]
mod calls;
pub mod crashes;
pub mod drive;
pub mod random;
pub mod random_replies;
pub mod reference;

pub use agree::{agree, shrink};
