//! The turns that a thread had before a client started.
//!
//! They are kept beside the transcript, so that a later owner of the run knows them, too: what an
//! earlier attempt spent in the same thread must not be paid twice.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::process::read_regular;

/// The earlier turns, as far as they are known.
#[derive(Debug, Clone, Default)]
pub(super) struct PriorTurns {
    file: Option<PathBuf>,
    turns: Option<BTreeSet<String>>,
}

impl PriorTurns {
    /// What was kept in this file, if anything was.
    pub(super) fn kept_in(file: PathBuf) -> Self {
        let kept = read_regular(&file).ok();
        let turns = kept.and_then(|kept| serde_json::from_slice(&kept).ok());
        Self { file: Some(file), turns }
    }

    /// Keeps these, before a client starts.
    pub(super) fn keep(&mut self, turns: BTreeSet<String>) -> io::Result<()> {
        let text = serde_json::to_vec(&turns)?;
        self.turns = Some(turns);
        self.file.as_ref().map_or(Ok(()), |file| fs::write(file, text))
    }

    /// Whether anything is known of them.
    pub(super) const fn is_known(&self) -> bool {
        self.turns.is_some()
    }

    /// Whether this is one of them, if that is known.
    pub(super) fn contains(&self, turn: &str) -> Option<bool> {
        self.turns.as_ref().map(|turns| turns.contains(turn))
    }
}
