//! Snapshots of long runs, so that opening or inspecting one need not fold every record.
//!
//! A snapshot is only a cache. It is used if the same build wrote it and it matches a record of
//! this journal; otherwise the journal is folded from its start, with the same result. The file
//! format is in `raymond_store::snapshot`.

use std::path::Path;

use raymond_core::run::Run;
use raymond_core::view::Ledger;
use raymond_store::disk::{self, Disk};
use raymond_store::journal::{JournalLines, Sum};
use raymond_store::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::driver::Head;
use crate::fold::{self, FoldError};

/// The fewest new records between two snapshots. Shorter journals are folded faster than a snapshot
/// is written.
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

/// Saves a snapshot of the head, whose last record has this checksum.
pub fn save(head: &Head, sum: Sum, disk: &dyn Disk, path: &Path) -> Result<(), disk::Error> {
    let Some(build) = build() else { return Ok(()) };
    let state = Saved { build, run: head.run.clone(), ledger: head.ledger.clone() };
    // A state that cannot be serialised becomes an empty snapshot, which `load` ignores.
    let state = serde_json::to_vec(&state).unwrap_or_default();
    Snapshot { seq: head.seq, sum, state }.write(disk, path)
}

/// Folds a journal, starting with the snapshot at `path` if it fits.
pub fn open(lines: &JournalLines, disk: &dyn Disk, path: Option<&Path>) -> Result<Head, FoldError> {
    let loaded = path.and_then(|path| load(lines, disk, path));
    let mut head = loaded.unwrap_or_else(Head::empty);
    for line in lines.after(head.seq) {
        head.fold(&fold::record(line.body, line.seq)?);
    }
    Ok(head)
}

/// Identifies this build, because two builds of one version may differ in their types. Returns
/// `None` if the executable was replaced while it runs.
fn build() -> Option<String> {
    // Size and time of the executable differ between builds of one version.
    let program = std::env::current_exe().and_then(std::fs::metadata).ok()?;
    let stamp = (program.len(), program.modified().ok()?);
    Some(format!("{} {stamp:?}", env!("CARGO_PKG_VERSION")))
}

fn load(lines: &JournalLines, disk: &dyn Disk, path: &Path) -> Option<Head> {
    let snapshot = Snapshot::read(disk, path, lines)?;
    // Only the build is parsed first: the state of another build may have other types.
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

    use raymond_core::run::stop::{StopMode, StopOrigin};
    use raymond_core::run::{Event, Input, Record, RecordStep};
    use raymond_core::time::Timestamp;
    use raymond_store::Journal;
    use raymond_store::disk::Memory;

    use super::*;

    /// Returns a journal of three records and its disk.
    fn journal() -> (Memory, Journal) {
        let disk = Memory::new(1);
        let mut journal =
            Journal::create(Arc::new(disk.clone()), Path::new("/journal"), br#"{"format":1}"#)
                .unwrap();
        for seq in 1..=3 {
            let (mode, key) = (StopMode::Now, format!("key-{seq}"));
            let events =
                vec![Event::StopRequested { mode, by: StopOrigin::Command, key: key.clone() }];
            let steps = vec![RecordStep {
                cause: Input::Stop { mode, by: StopOrigin::Command, key },
                events,
            }];
            let record = Record { seq, at: Timestamp(seq), steps };
            journal.append(&serde_json::to_vec(&record).unwrap()).unwrap();
        }
        (disk, journal)
    }

    fn lines(disk: &Memory) -> JournalLines {
        Journal::read(disk, Path::new("/journal")).unwrap().lines
    }

    #[test]
    fn snapshot_gives_the_same_head_as_folding() {
        let (disk, mut journal) = journal();
        let path = Path::new("/snapshot");
        let folded = open(&lines(&disk), &disk, Some(path)).unwrap();
        save(&folded, journal.sum(), &disk, path).unwrap();
        let loaded = load(&lines(&disk), &disk, path).unwrap();
        assert_eq!((loaded.run, loaded.ledger, loaded.seq), (folded.run, folded.ledger, 3));

        let key = "later".to_owned();
        let events = vec![Event::StopRequested {
            mode: StopMode::Cancel,
            by: StopOrigin::Command,
            key: key.clone(),
        }];
        let cause = Input::Stop { mode: StopMode::Cancel, by: StopOrigin::Command, key };
        let record = Record { seq: 4, at: Timestamp(4), steps: vec![RecordStep { cause, events }] };
        journal.append(&serde_json::to_vec(&record).unwrap()).unwrap();
        let opened = open(&lines(&disk), &disk, Some(path)).unwrap();
        assert_eq!(opened.seq, 4);
        assert!(["key-1", "key-3", "later"].iter().all(|key| opened.run.keys.contains(*key)));
    }

    // proves: S20
    #[test]
    fn snapshot_of_other_history_or_build_is_unused() {
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
