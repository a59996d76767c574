//! The head of a long run, kept beside its journal so that whoever opens it or looks at it need not fold
//! everything.
//!
//! It is derived, and believed only when it was written by this very build and reflects a record
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
pub const MIN_RECORDS: u64 = 1_000;

#[derive(Serialize, Deserialize)]
struct Saved {
    build: String,
    run: Run,
    ledger: Ledger,
}

#[derive(Deserialize)]
struct Build {
    build: String,
}

/// Keeps the head whose last record has this sum, where it is known which build does.
pub fn save(head: &Head, sum: Sum, disk: &dyn Disk, path: &Path) -> Result<(), disk::Error> {
    let Some(build) = build() else { return Ok(()) };
    let state = Saved { build, run: head.run.clone(), ledger: head.ledger.clone() };
    let state = serde_json::to_vec(&state).unwrap_or_default();
    Snapshot { seq: head.seq, sum, state }.write(disk, path)
}

/// Folds a journal, from its snapshot at `path` on where there is one that fits.
pub fn open(lines: &Lines, disk: &dyn Disk, path: Option<&Path>) -> Result<Head, FoldError> {
    let loaded = path.and_then(|path| load(lines, disk, path));
    let mut head = loaded.unwrap_or_else(Head::empty);
    for line in lines.after(head.seq) {
        head.fold(&fold::record(line.body, line.seq)?);
    }
    Ok(head)
}

/// This very program: two builds of one version may disagree about what a run is. Of one that was replaced while
/// it runs it is not known which it is.
fn build() -> Option<String> {
    let program = std::env::current_exe().and_then(std::fs::metadata).ok()?;
    let stamp = (program.len(), program.modified().ok()?);
    Some(format!("{} {stamp:?}", env!("CARGO_PKG_VERSION")))
}

fn load(lines: &Lines, disk: &dyn Disk, path: &Path) -> Option<Head> {
    let snapshot = Snapshot::read(disk, path, lines)?;
    // What another build means by the rest is not looked at.
    let Build { build } = serde_json::from_slice(&snapshot.state).ok()?;
    if build != self::build()? {
        return None;
    }
    let Saved { run, ledger, .. } = serde_json::from_slice(&snapshot.state).ok()?;
    Some(Head { run, ledger, seq: snapshot.seq })
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
        let folded = open(&lines(&disk), &disk, Some(path)).unwrap();
        save(&folded, journal.sum(), &disk, path).unwrap();
        let loaded = load(&lines(&disk), &disk, path).unwrap();
        assert_eq!((loaded.run, loaded.ledger, loaded.seq), (folded.run, folded.ledger, 3));

        let key = "later".to_owned();
        let events = vec![Event::StopRequested { mode: StopMode::Cancel, key: key.clone() }];
        let cause = Input::Stop { mode: StopMode::Cancel, key };
        let record = Record { seq: 4, at: Timestamp(4), steps: vec![Step { cause, events }] };
        journal.append(&serde_json::to_vec(&record).unwrap()).unwrap();
        let opened = open(&lines(&disk), &disk, Some(path)).unwrap();
        assert_eq!(opened.seq, 4);
        assert!(["key-1", "key-3", "later"].iter().all(|key| opened.run.keys.contains(*key)));
    }

    // proves: S20
    #[test]
    fn a_snapshot_of_another_history_or_release_is_not_believed() {
        let (disk, journal) = journal();
        let path = Path::new("/snapshot");
        let mut head = open(&lines(&disk), &disk, Some(path)).unwrap();
        head.run.keys.insert("invented".to_owned());
        save(&head, journal.sum(), &disk, path).unwrap();
        assert!(open(&lines(&disk), &disk, Some(path)).unwrap().run.keys.contains("invented"));

        let mut other = Snapshot::read(&disk, path, &lines(&disk)).unwrap();
        other.state = String::from_utf8(other.state)
            .unwrap()
            .replacen(env!("CARGO_PKG_VERSION"), "0.0.0", 1)
            .into_bytes();
        other.write(&disk, path).unwrap();
        assert!(!open(&lines(&disk), &disk, Some(path)).unwrap().run.keys.contains("invented"));

        save(&Head { seq: 2, ..head }, journal.sum(), &disk, path).unwrap();
        assert!(!open(&lines(&disk), &disk, Some(path)).unwrap().run.keys.contains("invented"));
    }
}
