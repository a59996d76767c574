//! Lines of a journal: a header, then one record for each batch of inputs.
//!
//! A record consists of *record steps*: each is one input with its events. All steps of a record
//! become durable together or not at all. Checksums and files are the concern of `store::journal`.

use serde::{Deserialize, Serialize};

use crate::ids::{Nonce, RunId};
use crate::time::Timestamp;

use super::event::Event;
use super::input::Input;

/// The version of the journal format. Raymond refuses a newer one, because it cannot know what a
/// line that it skips would mean.
pub const FORMAT: u32 = 1;

/// The first line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub format: u32,
    /// The run that the journal belongs to.
    pub run: RunId,
    /// The nonce that the run started with.
    pub nonce: Nonce,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The number of the record, from 1.
    pub seq: u64,
    /// The time of the decision; a replay decides at this time.
    pub at: Timestamp,
    pub steps: Vec<RecordStep>,
}

/// One input with the events that followed from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordStep {
    pub cause: Input,
    pub events: Vec<Event>,
}
