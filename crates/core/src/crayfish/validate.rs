//! Checks a whole document before anything runs, and builds the [`Document`].
//!
//! All problems are told, in document order, each with its JSON pointer. Steps are visited with an
//! explicit stack, so nesting costs no stack space; beyond [`NESTING`] levels or [`STEPS`] steps a
//! document is refused. What only a run can know (does this value exist, is that an array) is not
//! checked here, nor are JSON Schemas: see [`Document::schemas`].

use serde_json::Value;

use super::document::Document;
use super::problem::{Problem, Report};
pub use doubts::doubts;
pub use found::schemas;
pub use order::in_order;
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
mod walk;

/// How many steps may stand inside each other.
pub const NESTING: usize = 500;

/// How many steps a document may have.
pub const STEPS: usize = 1_000_000;

/// How large a document may be.
#[derive(Clone, Copy)]
struct Limits {
    nesting: usize,
    steps: usize,
}

impl Document {
    /// Checks a document and reads it; otherwise all that is wrong with it, in document order.
    pub fn parse(value: &Value) -> Result<Self, Vec<Problem>> {
        let mut report = Report::new();
        let (head, steps) = top::head(&mut report, value);
        let mut walk = Walk::new(report, steps, Limits { nesting: NESTING, steps: STEPS });
        walk.steps(steps);
        walk.sources();
        let document = walk.assemble().zip(head).map(|((steps, top, by_id), head)| Self {
            name: head.name,
            version: head.version,
            vars: head.vars,
            env: head.env,
            steps,
            top,
            by_id,
        });
        walk.report.settle(document)
    }
}
