//! A journal decided again by this release, and the first difference named.
//!
//! It only looks: no lock is taken and nothing is written, so it is safe beside an owner, and on a
//! run of another machine.

use std::path::Path;

use raymond_core::run::Run;
use raymond_core::run::replay::{Difference, Replay, Sources};
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
    /// How many records were decided; the last of them is the one that differs, where one does.
    pub records: u64,
    /// Where today's decision is another one.
    pub difference: Option<Box<Difference>>,
    /// The run as decided; the recorded one, unless there is a difference.
    pub run: Run,
    /// What stands after the last good record.
    pub tail: Tail,
}

/// Why a journal cannot be decided again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// It is not a run.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// Something that a record names is not there any more.
    #[error("could not decide record {seq} again")]
    Source {
        /// The record.
        seq: u64,
        /// What is missing.
        source: SourceError,
    },
}

/// Why something that a journal names cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A text.
    #[error("could not read a text that it names")]
    Text(#[from] blobs::Error),
    /// A definition.
    #[error(transparent)]
    Definition(#[from] PinError),
}

/// Decides the journal at `path` again; what it names lies in `blobs`.
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
        if difference.is_some() {
            break;
        }
    }
    Ok(Replayed { records, difference, run: replay.into_run(), tail: read.tail })
}

/// What lies beside a journal.
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
