//! How a run, or a turn, is stopped.

use serde::{Deserialize, Serialize};

/// How a run is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// When the turns in flight are over.
    AfterTurn,
    /// Now: turns in flight are interrupted.
    Now,
    /// Now, and for good.
    Cancel,
}

/// Who cut a turn off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// The owner of the run died.
    Crash,
    /// The run was stopped.
    Stop,
}
