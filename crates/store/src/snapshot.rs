//! Snapshots: the folded state of a journal up to a record, so that a long run need not be folded
//! from its start.
//!
//! A snapshot is derived and not synced. Its first line contains the number and checksum of its
//! record and a hash of the rest. A snapshot that is torn, damaged or from another history is
//! ignored. The meaning of the state is in `raymond_engine::snapshot`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, Durability};
use crate::disk::{self, Disk};
use crate::journal::{JournalLines, Sum};

/// The state of a run after a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub seq: u64,
    /// The checksum of the record. Checksums are chained, so it covers everything before it too.
    pub sum: Sum,
    pub state: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    seq: u64,
    sum: Sum,
    hash: String,
}

impl Snapshot {
    /// Replaces the snapshot at `path`, in a directory that exists.
    pub fn write(&self, disk: &dyn Disk, path: &Path) -> Result<(), disk::Error> {
        let head = Head { seq: self.seq, sum: self.sum, hash: hash(&self.state) };
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.state);
        atomic_file::write(disk, path, &bytes, Durability::Derived)
    }

    /// Reads the snapshot at `path`, if it belongs to the history in `lines`.
    /// [`JournalLines::after`]`(seq)` returns the records that remain to be folded.
    pub fn read(disk: &dyn Disk, path: &Path, lines: &JournalLines) -> Option<Self> {
        let mut bytes = disk::read(disk, path).ok()?;
        let newline = memchr::memchr(b'\n', &bytes)?;
        let head: Head = serde_json::from_slice(&bytes[..newline]).ok()?;
        let state = bytes.split_off(newline + 1);
        // The chained checksum of the record proves that the snapshot has the same history.
        let reflected = lines.line(head.seq)?;
        (head.hash == hash(&state) && head.sum == reflected.sum).then_some(Self {
            seq: head.seq,
            sum: head.sum,
            state,
        })
    }
}

fn hash(state: &[u8]) -> String {
    blake3::hash(state).to_hex().to_string()
}
