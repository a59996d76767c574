//! Checks after every record that the view of a run is the same for everyone: for a viewer who saw
//! all events, and for a viewer who joins now.

use raymond_core::run::{Record, Run};
use raymond_core::view::{Ledger, RunView};

use crate::violation::Violation;

/// The folds of all records so far.
#[derive(Debug, Default)]
pub struct Views {
    watched: RunView,
    ledger: Ledger,
}

impl Views {
    /// Folds in a record. `run` already contains it.
    pub fn record(&mut self, run: &Run, record: &Record) -> Result<(), Violation> {
        for event in record.steps.iter().flat_map(|step| &step.events) {
            self.watched.note(record.at, event);
            self.ledger.note(record.at, event);
        }
        // A viewer who joins has only the run and the ledger. Facts that only the fold knows
        // would be missing on that screen.
        let joined = RunView::of(run, &self.ledger);
        if joined == self.watched {
            return Ok(());
        }
        let (seq, watched) = (record.seq, &self.watched);
        Err(Violation(format!("record {seq}: the fold is {watched:#?}, but `of` is {joined:#?}")))
    }
}
