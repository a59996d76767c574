//! Runs of the step language: the decisions of a document's branches, and the reply to its caller.
//!
//! The language itself (documents, expressions, the walk over steps) is in [`crate::crayfish`], which
//! knows nothing of runs, agents and turns. Here its events become events of a run.

pub mod answer;
pub(crate) mod decide;
