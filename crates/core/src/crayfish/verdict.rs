//! The result of checking an output against the schema of its step.

use serde::{Deserialize, Serialize};

use super::problem::Problem;

/// The result of checking an output against its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Valid,
    /// The reasons why it is invalid.
    Invalid(Vec<Problem>),
}
