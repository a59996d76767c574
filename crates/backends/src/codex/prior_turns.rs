//! The turns that a thread had before the client started.
//!
//! The list is a file beside the transcript, so that a later owner of the run can read it. Without
//! the list, the cost of an earlier attempt in the same thread would be charged twice.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use crate::process::{read_regular, write_private};

/// The earlier turns, if they are known.
#[derive(Debug, Clone, Default)]
pub(super) struct PriorTurns {
    file: Option<PathBuf>,
    turns: Option<BTreeSet<String>>,
}

impl PriorTurns {
    /// Reads the list from this file, if it exists.
    pub(super) fn kept_in(file: PathBuf) -> Self {
        // A list that is missing or damaged is unknown, not empty: an empty list would charge all
        // earlier turns to this one.
        let kept = read_regular(&file).ok();
        let turns = kept.and_then(|kept| serde_json::from_slice(&kept).ok());
        Self { file: Some(file), turns }
    }

    /// Writes the list before a client starts.
    pub(super) fn keep(&mut self, turns: BTreeSet<String>) -> io::Result<()> {
        let text = serde_json::to_vec(&turns)?;
        self.turns = Some(turns);
        self.file.as_ref().map_or(Ok(()), |file| write_private(file, &text))
    }

    pub(super) const fn is_known(&self) -> bool {
        self.turns.is_some()
    }

    /// Whether the list contains this turn, or `None` if the list is unknown.
    pub(super) fn contains(&self, turn: &str) -> Option<bool> {
        self.turns.as_ref().map(|turns| turns.contains(turn))
    }
}
