//! Readable items from the transcripts of all backends that write transcripts.
//!
//! `raymond logs` and live displays use this module. It reuses the readers that decide how a turn
//! ended, so logs and outcomes never disagree. It reads no files: the caller passes the lines.

use raymond_core::ids::BackendName;

pub use crate::headless::{Speaker, TranscriptItem};

use crate::process::StreamEvent;
use crate::{claude, codex};

/// A parser for the transcript of one turn, fed line by line.
#[derive(Debug)]
pub struct TranscriptParser(Language);

#[derive(Debug)]
enum Language {
    Claude(Box<claude::TranscriptParser>),
    Codex(Box<codex::TranscriptParser>),
}

impl TranscriptParser {
    /// Creates a parser for transcripts of this backend, or `None` if the backend writes none.
    pub fn of(backend: &BackendName) -> Option<Self> {
        match backend.as_str() {
            claude::NAME => Some(Self(Language::Claude(Box::default()))),
            codex::NAME => Some(Self(Language::Codex(Box::default()))),
            _ => None,
        }
    }

    /// Returns the items in one line of the transcript.
    pub fn read_event(&mut self, event: &StreamEvent) -> Vec<TranscriptItem> {
        match &mut self.0 {
            Language::Claude(parser) => parser.read_event(event),
            Language::Codex(parser) => parser.read_event(event),
        }
    }
}
