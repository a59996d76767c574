//! Readable items from a transcript of Codex.

use std::path::Path;
use std::sync::Arc;

use raymond_core::prices::Prices;

use super::prior_turns::PriorTurns;
use super::thread_usage::ThreadUsage;
use super::turn::{CodexTurn, Form};
use crate::headless::TurnReader;

/// Creates a reader for the transcript of one turn. It does not read the rollout files.
pub(crate) fn transcript_reader() -> Box<dyn TurnReader> {
    let thread_usage =
        ThreadUsage::new(Path::new(""), Arc::new(Prices::default()), PriorTurns::default());
    Box::new(CodexTurn::new(thread_usage, None, Form::Text))
}
