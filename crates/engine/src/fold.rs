//! Turns the lines of a journal into a run.
//!
//! Recovery and every command that shows a run use this module, so they all see the same run. It
//! checks the header and the order of records; checksums and unfinished lines are the store's
//! business. The meaning of events is in `raymond_core::run::apply`.

use std::path::Path;

use raymond_core::ids::RunId;
use raymond_core::run::{Header, Record, Run, apply, record};
use raymond_core::view::{Ledger, RunView};
use raymond_store::disk::{Disk, OpenMode};
use raymond_store::journal;

use crate::driver::Head;

/// Why a journal cannot be read as a run.
#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    /// The first line is not a header.
    #[error("this is not the journal of a run: {0}")]
    NotAJournal(String),
    /// The journal belongs to another run.
    #[error("the journal of {wanted} belongs to the run {found}")]
    OtherRun {
        /// The run whose directory contains the journal.
        wanted: RunId,
        /// The run that the journal names.
        found: RunId,
    },
    /// A later release wrote the journal.
    #[error(
        "the journal has format {0}, but this release reads only up to {format}",
        format = record::FORMAT
    )]
    Newer(u32),
    /// A line with a correct checksum is not a record.
    #[error("could not read record {seq}: {why}")]
    Unreadable { seq: u64, why: String },
}

/// Reads the first line of a journal.
pub fn header(line: &[u8]) -> Result<Header, FoldError> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    let foreign = |error: serde_json::Error| FoldError::NotAJournal(error.to_string());
    // Only the format is read first: the header of a later format may have other fields.
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

/// Checks that the records belong to the run of the header: the paths of all other files follow
/// from that name.
pub fn check_run(header: &Header, head: &Head) -> Result<(), FoldError> {
    if head.seq == 0 || head.run.id == header.run {
        return Ok(());
    }
    Err(FoldError::OtherRun { wanted: header.run.clone(), found: head.run.id.clone() })
}

/// Returns a better reason for an error in the first line: the file is not a journal, or a later
/// release wrote it and uses checksums that this release does not know.
pub fn explain_bad_header(disk: &dyn Disk, error: &journal::Error) -> Option<FoldError> {
    let journal::Error::Damaged { path, damaged } = error else { return None };
    if damaged.seq > 0 {
        return None;
    }
    read_header(disk, path)?.err()
}

/// Reads the header of a journal without reading the rest.
pub(crate) fn read_header(disk: &dyn Disk, path: &Path) -> Option<Result<Header, FoldError>> {
    // A header has about 100 bytes. 4 KiB is one page.
    let mut start = vec![0; 4096];
    let length = disk.open(path, OpenMode::Read).ok()?.read_at(0, &mut start).ok()?;
    let first = start[..length].split(|byte| *byte == b'\n').next()?;
    Some(header(first))
}

/// Parses one record, which must have the number `seq`.
pub fn record(line: &[u8], seq: u64) -> Result<Record, FoldError> {
    let unreadable = |why: String| FoldError::Unreadable { seq, why };
    // Checking UTF-8 once for the whole line is faster than letting serde check each text.
    let line = std::str::from_utf8(line).map_err(|error| unreadable(error.to_string()))?;
    let record: Record =
        serde_json::from_str(line).map_err(|error| unreadable(error.to_string()))?;
    if record.seq != seq {
        return Err(unreadable(format!("its number is {}", record.seq)));
    }
    Ok(record)
}

impl Head {
    /// Returns the head of a run without records.
    pub fn empty() -> Self {
        Self { run: Run::default(), ledger: Ledger::default(), seq: 0 }
    }

    /// Returns the view that screens draw.
    pub fn view(&self) -> RunView {
        RunView::of(&self.run, &self.ledger)
    }

    /// Applies the next record.
    pub fn fold(&mut self, record: &Record) {
        self.seq = record.seq;
        for event in record.steps.iter().flat_map(|step| &step.events) {
            apply(&mut self.run, event);
            self.ledger.note(record.at, event);
        }
    }
}
