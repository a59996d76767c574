//! Readable items from the transcripts of all backends that write transcripts.
//!
//! `raymond logs` and live displays use this module. It reuses the readers that decide how a turn
//! ended, so logs and outcomes never disagree. It reads no files: the caller passes the lines.

use raymond_core::ids::BackendName;

pub use crate::headless::{Speaker, TranscriptItem};

use crate::headless::TurnReader;
use crate::process::StreamEvent;
use crate::registry;

/// A parser for the transcript of one turn, fed line by line.
#[derive(Debug)]
pub struct TranscriptParser(Box<dyn TurnReader>);

impl TranscriptParser {
    /// Creates a parser for transcripts of this backend, or `None` if the backend writes none.
    pub fn of(backend: &BackendName) -> Option<Self> {
        registry::client(backend).map(|kind| Self((kind.transcript_reader)()))
    }

    /// Returns the items in one line of the transcript.
    pub fn read_event(&mut self, event: &StreamEvent) -> Vec<TranscriptItem> {
        self.0.read_event(event)
    }
}
