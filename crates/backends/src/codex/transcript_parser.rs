//! Readable items from a transcript of Codex.

use std::path::Path;
use std::sync::Arc;

use raymond_core::prices::Prices;

use super::prior_turns::PriorTurns;
use super::thread_usage::ThreadUsage;
use super::turn::{Form, Turn};
use crate::headless::{TranscriptItem, TurnReader as _};
use crate::process::StreamEvent;

/// A parser for a transcript, fed line by line. It does not read the rollout files.
#[derive(Debug)]
pub(crate) struct TranscriptParser(Turn);

impl Default for TranscriptParser {
    fn default() -> Self {
        let thread_usage =
            ThreadUsage::new(Path::new(""), Arc::new(Prices::default()), PriorTurns::default());
        Self(Turn::new(thread_usage, None, Form::Text))
    }
}

impl TranscriptParser {
    /// Returns the items in one line.
    pub(crate) fn read_event(&mut self, event: &StreamEvent) -> Vec<TranscriptItem> {
        self.0.read_event(event)
    }
}
