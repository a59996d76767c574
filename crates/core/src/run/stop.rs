//! The ways to stop a run, the origins of a request to stop, and the causes that interrupt a turn.

use serde::{Deserialize, Serialize};

/// How a run should end. The order is by strength: a later variant overrides an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// When the turns in flight have ended.
    AfterTurn,
    /// Now. Turns in flight are interrupted.
    Now,
    /// Now, without the possibility to resume.
    Cancel,
}

/// The origin of a request to end a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopOrigin {
    /// A user, through the inbox of the run.
    #[default]
    Command,
    /// A signal to its process: Ctrl-C, `kill`, a closed terminal.
    Signal,
    /// Its own process, because it could not continue.
    Trouble,
    /// Its caller, which no longer waits.
    Caller,
}

/// The cause of an interrupted turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// The owner of the run died.
    Crash,
    /// The run was stopped.
    Stop,
}
