//! Decides the records of a journal again with this release, and reports the first difference.
//!
//! This takes no lock and writes nothing, so it is safe while an owner is active and for a journal
//! of another machine. The comparison is in `raymond_core::decide::replay`; this module provides
//! the blobs and definitions that the records refer to.

use std::path::Path;

use raymond_core::decide::replay::{Difference, Replay, Sources};
use raymond_core::run::Run;
use raymond_core::value::{BlobRef, Value};
use raymond_core::workflow::Definition;
use raymond_store::disk::Disk;
use raymond_store::journal::{self, Tail};
use raymond_store::{Blobs, Journal, blobs};

use crate::fold::{self, FoldError};
use crate::observe;
use crate::pin::{Pin, PinError};

/// A journal that was decided again.
#[derive(Debug)]
pub struct Replayed {
    /// The number of records that were decided. If there is a difference, it is in the last one.
    pub records: u64,
    /// The first record that this release decides differently.
    pub difference: Option<Box<Difference>>,
    /// The run as decided by this release.
    pub run: Run,
    /// The bytes after the last good record.
    pub tail: Tail,
}

/// Why a journal cannot be decided again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// A blob or definition that a record refers to is missing.
    #[error("could not decide record {seq} again")]
    Source { seq: u64, source: SourceError },
}

/// Why something that a journal refers to cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("could not read a text that it names")]
    Text(#[from] blobs::Error),
    #[error(transparent)]
    Definition(#[from] PinError),
}

/// Decides the journal at `path` again. `blobs` contains the texts that it refers to.
pub fn replay(disk: &dyn Disk, path: &Path, blobs: &Blobs) -> Result<Replayed, ReplayError> {
    let read = Journal::read(disk, path).map_err(|error| {
        match fold::explain_bad_header(disk, &error) {
            Some(better) => ReplayError::Fold(better),
            None => ReplayError::Journal(error),
        }
    })?;
    fold::header(&read.header)?;
    let mut replay = Replay::default();
    let (mut records, mut difference) = (0, None);
    for line in read.lines.iter() {
        let record = fold::record(line.body, line.seq)?;
        records = line.seq;
        let decided = replay.record(&record, &Pinned(blobs));
        difference = decided.map_err(|source| ReplayError::Source { seq: line.seq, source })?;
        // After a difference the two runs differ, and every later record would differ too.
        if difference.is_some() {
            break;
        }
    }
    Ok(Replayed { records, difference, run: replay.into_run(), tail: read.tail })
}

/// The blobs beside a journal.
struct Pinned<'b>(&'b Blobs);

impl Sources for Pinned<'_> {
    type Error = SourceError;

    fn text(&self, blob: &BlobRef) -> Result<String, SourceError> {
        Ok(observe::load(self.0, &Value::Blob(blob.clone()))?)
    }

    fn definition(&self, manifest: &Value) -> Result<Definition, SourceError> {
        Ok(Pin::load(manifest, self.0)?.definition()?)
    }
}
