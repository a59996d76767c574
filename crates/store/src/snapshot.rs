//! The fold of a journal up to some record, so that a long run need not be folded from its start.
//!
//! It is derived and not synced; its first line says which record it reflects and carries a hash of
//! the rest. One that is torn, damaged, or of another history than the journal's is ignored.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::disk::{self, Disk};
use crate::journal::{Lines, Sum};
use crate::place::{self, Durability};

/// The state of a run after a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of the record.
    pub seq: u64,
    /// The sum of the record, which stands for everything before it too.
    pub sum: Sum,
    /// The state, as its owner encodes it.
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
        place::place(disk, path, &bytes, Durability::Derived)
    }

    /// The snapshot at `path`, if it belongs to the history in `lines`; then
    /// [`Lines::after`]`(seq)` is what remains to be folded.
    pub fn read(disk: &dyn Disk, path: &Path, lines: &Lines) -> Option<Self> {
        let mut bytes = disk::read(disk, path).ok()?;
        let newline = memchr::memchr(b'\n', &bytes)?;
        let head: Head = serde_json::from_slice(&bytes[..newline]).ok()?;
        let state = bytes.split_off(newline + 1);
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
