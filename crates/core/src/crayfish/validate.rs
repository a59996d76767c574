//! Checks a whole document before anything runs, and builds the [`Document`].
//!
//! All problems are reported in document order, each with its JSON pointer. Steps are visited with
//! an explicit stack, so nesting costs no stack space; beyond [`NESTING`] levels or [`STEPS`] steps
//! a document is refused. Facts that only a run can know, such as whether a value exists, are not
//! checked here. JSON Schemas are not checked either: see [`Document::schemas`].

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::Document;
use super::problem::{Problem, Report};
pub use doubts::doubts;
pub use found::schemas;
pub use order::in_order;
pub use variables::variables;
use walk::Walk;

mod agent;
mod doubts;
mod exec;
pub(super) mod fields;
mod flow;
mod found;
pub(super) mod keys;
mod leaves;
mod order;
mod scope;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod top;
mod unfinished;
mod variables;
mod walk;

/// How many levels of steps may be nested.
// docs/crayfish.md lists both limits.
pub const NESTING: usize = 500;

/// How many steps a document may have.
pub const STEPS: usize = 1_000_000;

/// The size limits of a document; tests use small ones.
#[derive(Clone, Copy)]
struct Limits {
    nesting: usize,
    steps: usize,
}

impl Document {
    /// Checks and reads a document, or returns all its problems in document order.
    pub fn parse(value: &Value) -> Result<Self, Vec<Problem>> {
        let mut report = Report::new();
        let (head, steps) = top::head(&mut report, value);
        let mut walk = Walk::new(report, steps, Limits { nesting: NESTING, steps: STEPS });
        walk.steps(steps);
        // After all steps, because `inputFrom` may name a later one.
        walk.sources();
        // Without a step or a head the report has the reason, and `settle` returns it.
        let document = walk.assemble().zip(head).map(|((steps, top, by_id), head)| Self {
            name: head.name,
            version: head.version,
            vars: head.vars,
            env: head.env,
            output: head.output,
            steps,
            top,
            by_id,
            listed: BTreeSet::new(),
        });
        walk.report.settle(document.map(Self::with_listed_loops))
    }
}
