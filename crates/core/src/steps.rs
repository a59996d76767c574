//! Runs of the step language: the decisions of a document's branches, and the reply to its caller.
//!
//! The language itself is in [`crate::crayfish`]. Three places take part in the choice of the next
//! step, one after the other:
//!
//! - [`crate::crayfish::state`] says which branch continues (`next_ready`);
//! - [`crate::crayfish::walk`] computes from the document what this branch does next;
//! - `decide` makes events of the run from it: agents, visits, turns, gates, attempts, failures.
//!
//! `work` is what the turn of a step runs or sends.

pub mod answer;
pub(crate) mod decide;
pub(crate) mod work;
