//! Whether an output is valid by the schema of its step.

use serde::{Deserialize, Serialize};

use super::problem::Problem;

/// Whether an output is what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Valid,
    /// It is not, for these reasons.
    Invalid(Vec<Problem>),
}
