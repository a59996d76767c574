//! What the client said in a turn, for people who read it.

use std::path::Path;
use std::sync::Arc;

use raymond_core::prices::Prices;

use super::prior_turns::PriorTurns;
use super::thread_usage::ThreadUsage;
use super::turn::{Form, Turn};
use crate::headless::{TranscriptItem, TurnReader as _};
use crate::process::StreamEvent;

/// Reads a transcript again, line by line. What the client keeps elsewhere is not looked at.
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
    /// What this line says.
    pub(crate) fn read_event(&mut self, event: &StreamEvent) -> Vec<TranscriptItem> {
        self.0.read_event(event)
    }
}
