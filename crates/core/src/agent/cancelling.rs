//! The reasons for which one agent of a run is cancelled.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;

/// Why one agent is cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The wait of its parent is met without it.
    EnoughEnded,
    /// The wait of its parent timed out.
    TimedOut,
    /// The wait of its parent cannot be met, because this worker failed.
    Failed(AgentId),
    /// A user asked for it.
    Requested { by: String },
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EnoughEnded => f.write_str("enough workers ended"),
            Self::TimedOut => f.write_str("the wait timed out"),
            Self::Failed(worker) => write!(f, "{worker} failed"),
            Self::Requested { by } => write!(f, "requested by {by}"),
        }
    }
}
