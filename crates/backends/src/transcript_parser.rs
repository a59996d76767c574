//! What was said in a turn, for people who read it: transcripts of every backend whose clients write one.

use raymond_core::ids::BackendName;

pub use crate::headless::{Speaker, TranscriptItem};

use crate::process::StreamEvent;
use crate::{claude, codex};

/// Reads a transcript again, line by line.
#[derive(Debug)]
pub struct TranscriptParser(Language);

#[derive(Debug)]
enum Language {
    Claude(Box<claude::TranscriptParser>),
    Codex(Box<codex::TranscriptParser>),
}

impl TranscriptParser {
    /// For a transcript of this backend, where it writes any.
    pub fn of(backend: &BackendName) -> Option<Self> {
        match backend.as_str() {
            claude::NAME => Some(Self(Language::Claude(Box::default()))),
            codex::NAME => Some(Self(Language::Codex(Box::default()))),
            _ => None,
        }
    }

    /// What this line says.
    pub fn read_event(&mut self, event: &StreamEvent) -> Vec<TranscriptItem> {
        match &mut self.0 {
            Language::Claude(parser) => parser.read_event(event),
            Language::Codex(parser) => parser.read_event(event),
        }
    }
}
