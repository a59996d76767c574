//! One journal line: a batch of steps that became durable together.

use serde::{Deserialize, Serialize};

use crate::ids::{Nonce, RunId};
use crate::time::Timestamp;

use super::event::Event;
use super::input::Input;

/// The version of the journal format. A newer one is refused, never skipped.
pub const FORMAT: u32 = 1;

/// The first line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub format: u32,
    /// Whose journal it is.
    pub run: RunId,
    /// The nonce that the run started with.
    pub nonce: Nonce,
}

/// Every other line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number, from 1.
    pub seq: u64,
    /// When it was decided.
    pub at: Timestamp,
    /// What happened.
    pub steps: Vec<Step>,
}

/// One input, and what followed from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What was observed or asked for.
    pub cause: Input,
    /// What is so since then.
    pub events: Vec<Event>,
}
