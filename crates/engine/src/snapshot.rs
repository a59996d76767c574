//! The head of a long run, kept beside its journal so that opening it need not fold everything.
//!
//! It is derived, and believed only when it was written by this very release and reflects a record
//! of this very journal; otherwise the journal is folded from its start, which gives the same.

use std::path::Path;

use raymond_core::run::Run;
use raymond_core::view::Ledger;
use raymond_store::disk::{self, Disk};
use raymond_store::journal::{Lines, Sum};
use raymond_store::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::driver::Head;
use crate::fold::{self, FoldError};

/// Shorter journals are folded faster than a snapshot is written.
pub const WORTH_IT: u64 = 1_000;

#[derive(Serialize, Deserialize)]
struct State {
    release: String,
    run: Run,
    ledger: Ledger,
}

/// Keeps the head whose last record has this sum.
pub fn save(head: &Head, sum: Sum, disk: &dyn Disk, path: &Path) -> Result<(), disk::Error> {
    let state = State {
        release: env!("CARGO_PKG_VERSION").to_owned(),
        run: head.run.clone(),
        ledger: head.ledger.clone(),
    };
    let state = serde_json::to_vec(&state).unwrap_or_default();
    Snapshot { seq: head.seq, sum, state }.write(disk, path)
}

/// Folds a journal, from its snapshot on where there is one that fits.
pub fn open(lines: &Lines, disk: &dyn Disk, path: &Path) -> Result<Head, FoldError> {
    let mut head = load(lines, disk, path).unwrap_or_else(Head::unborn);
    for line in lines.after(head.seq) {
        head.fold(&fold::record(line.body, line.seq)?);
    }
    Ok(head)
}

fn load(lines: &Lines, disk: &dyn Disk, path: &Path) -> Option<Head> {
    let snapshot = Snapshot::read(disk, path, lines)?;
    let State { release, run, ledger } = serde_json::from_slice(&snapshot.state).ok()?;
    (release == env!("CARGO_PKG_VERSION")).then_some(Head { run, ledger, seq: snapshot.seq })
}
