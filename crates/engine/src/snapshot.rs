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
    let state = State { release: release(), run: head.run.clone(), ledger: head.ledger.clone() };
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

/// This very program: two builds of one version may disagree about what a run is.
fn release() -> String {
    let program = std::env::current_exe().and_then(std::fs::metadata);
    let stamp = program.and_then(|found| Ok((found.len(), found.modified()?)));
    format!("{} {:?}", env!("CARGO_PKG_VERSION"), stamp.ok())
}

fn load(lines: &Lines, disk: &dyn Disk, path: &Path) -> Option<Head> {
    let snapshot = Snapshot::read(disk, path, lines)?;
    let State { release, run, ledger } = serde_json::from_slice(&snapshot.state).ok()?;
    (release == self::release()).then_some(Head { run, ledger, seq: snapshot.seq })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use raymond_core::run::input::StopMode;
    use raymond_core::run::{Event, Input, Record, Step};
    use raymond_core::time::Timestamp;
    use raymond_store::Journal;
    use raymond_store::disk::Memory;

    use super::*;

    /// A journal of three records, and the disk it lies on.
    fn journal() -> (Memory, Journal) {
        let disk = Memory::new(1);
        let mut journal =
            Journal::create(Arc::new(disk.clone()), Path::new("/journal"), br#"{"format":1}"#)
                .unwrap();
        for seq in 1..=3 {
            let (mode, key) = (StopMode::Now, format!("key-{seq}"));
            let events = vec![Event::StopRequested { mode, key: key.clone() }];
            let steps = vec![Step { cause: Input::Stop { mode, key }, events }];
            let record = Record { seq, at: Timestamp(seq), steps };
            journal.append(&serde_json::to_vec(&record).unwrap()).unwrap();
        }
        (disk, journal)
    }

    fn lines(disk: &Memory) -> Lines {
        Journal::read(disk, Path::new("/journal")).unwrap().lines
    }

    #[test]
    fn a_snapshot_gives_the_head_that_folding_everything_gives() {
        let (disk, mut journal) = journal();
        let path = Path::new("/snapshot");
        let folded = open(&lines(&disk), &disk, path).unwrap();
        save(&folded, journal.sum(), &disk, path).unwrap();
        let loaded = load(&lines(&disk), &disk, path).unwrap();
        assert_eq!((loaded.run, loaded.ledger, loaded.seq), (folded.run, folded.ledger, 3));

        let key = "later".to_owned();
        let events = vec![Event::StopRequested { mode: StopMode::Cancel, key: key.clone() }];
        let cause = Input::Stop { mode: StopMode::Cancel, key };
        let record = Record { seq: 4, at: Timestamp(4), steps: vec![Step { cause, events }] };
        journal.append(&serde_json::to_vec(&record).unwrap()).unwrap();
        let opened = open(&lines(&disk), &disk, path).unwrap();
        assert_eq!(opened.seq, 4);
        assert!(["key-1", "key-3", "later"].iter().all(|key| opened.run.keys.contains(*key)));
    }

    #[test]
    fn a_snapshot_of_another_history_or_release_is_not_believed() {
        let (disk, journal) = journal();
        let path = Path::new("/snapshot");
        let mut head = open(&lines(&disk), &disk, path).unwrap();
        head.run.keys.insert("invented".to_owned());
        save(&head, journal.sum(), &disk, path).unwrap();
        assert!(open(&lines(&disk), &disk, path).unwrap().run.keys.contains("invented"));

        let mut other = Snapshot::read(&disk, path, &lines(&disk)).unwrap();
        other.state = String::from_utf8(other.state)
            .unwrap()
            .replacen(env!("CARGO_PKG_VERSION"), "0.0.0", 1)
            .into_bytes();
        other.write(&disk, path).unwrap();
        assert!(!open(&lines(&disk), &disk, path).unwrap().run.keys.contains("invented"));

        save(&Head { seq: 2, ..head }, journal.sum(), &disk, path).unwrap();
        assert!(!open(&lines(&disk), &disk, path).unwrap().run.keys.contains("invented"));
    }
}
