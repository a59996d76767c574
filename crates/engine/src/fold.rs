//! A journal's lines as a run: recovery and every screen go through here.

use std::path::Path;

use raymond_core::ids::RunId;
use raymond_core::run::{Header, Record, Run, apply, record};
use raymond_core::view::Ledger;
use raymond_store::disk::{Disk, Open};
use raymond_store::journal;

use crate::driver::Head;

/// Why a journal is not a run.
#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    /// The first line is not that of a journal of ours.
    #[error("this is not the journal of a run: {0}")]
    NotAJournal(String),
    /// It is that of another run.
    #[error("the journal of {wanted} belongs to the run {found}")]
    OtherRun {
        /// Whose it should be.
        wanted: RunId,
        /// Whose it is.
        found: RunId,
    },
    /// It was written by a later release.
    #[error(
        "the journal has format {0}, but this release reads only up to {format}",
        format = record::FORMAT
    )]
    Newer(u32),
    /// A line whose sum is right cannot be read.
    #[error("could not read record {seq}: {why}")]
    Unreadable {
        /// Its number.
        seq: u64,
        /// What is wrong.
        why: String,
    },
}

/// Reads the first line of a journal.
pub fn header(line: &[u8]) -> Result<Header, FoldError> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    let foreign = |error: serde_json::Error| FoldError::NotAJournal(error.to_string());
    // The format first: a later header may have another shape.
    let Format { format } = serde_json::from_slice(line).map_err(foreign)?;
    if format > record::FORMAT {
        return Err(FoldError::Newer(format));
    }
    serde_json::from_slice(line).map_err(foreign)
}

/// Checks that a journal belongs to the run under whose name it was found.
pub fn check_owner(run: &RunId, header: &Header) -> Result<(), FoldError> {
    if header.run == *run {
        return Ok(());
    }
    Err(FoldError::OtherRun { wanted: run.clone(), found: header.run.clone() })
}

/// Checks that the run which was folded is that of the header: files are found by its name.
pub fn check_run(header: &Header, head: &Head) -> Result<(), FoldError> {
    if head.seq == 0 || head.run.id == header.run {
        return Ok(());
    }
    Err(FoldError::OtherRun { wanted: header.run.clone(), found: head.run.id.clone() })
}

/// A better reason for an error about the very first line: the file was never ours, or a later
/// release, whose sums we do not know, wrote it.
pub fn explain_bad_header(disk: &dyn Disk, error: &journal::Error) -> Option<FoldError> {
    let journal::Error::Damaged { path, damaged } = error else { return None };
    if damaged.seq > 0 {
        return None;
    }
    read_header(disk, path)?.err()
}

/// The first line of a journal, whatever follows it.
pub(crate) fn read_header(disk: &dyn Disk, path: &Path) -> Option<Result<Header, FoldError>> {
    let mut start = vec![0; 4096];
    let length = disk.open(path, Open::Read).ok()?.read_at(0, &mut start).ok()?;
    let first = start[..length].split(|byte| *byte == b'\n').next()?;
    Some(header(first))
}

/// Reads one record, which has to be number `seq`.
pub fn record(line: &[u8], seq: u64) -> Result<Record, FoldError> {
    let unreadable = |why: String| FoldError::Unreadable { seq, why };
    // The bytes are checked at once, not text by text.
    let line = std::str::from_utf8(line).map_err(|error| unreadable(error.to_string()))?;
    let record: Record =
        serde_json::from_str(line).map_err(|error| unreadable(error.to_string()))?;
    if record.seq != seq {
        return Err(unreadable(format!("its number is {}", record.seq)));
    }
    Ok(record)
}

impl Head {
    /// A run of which nothing has been recorded.
    pub fn empty() -> Self {
        Self { run: Run::default(), ledger: Ledger::default(), seq: 0 }
    }

    /// Folds the next record in.
    pub fn fold(&mut self, record: &Record) {
        self.seq = record.seq;
        for event in record.steps.iter().flat_map(|step| &step.events) {
            apply(&mut self.run, event);
            self.ledger.note(record.at, event);
        }
    }
}
