//! After any crash a journal contains every acknowledged record, in order, with the blobs that it
//! refers to, and at most the one record that was in progress.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use raymond_store::disk::memory::{DiskFault, Operation, splitmix};
use raymond_store::disk::{Disk, Memory, OpenMode};
use raymond_store::journal::{Error, JournalLines};
use raymond_store::{Blobs, Journal, Root, RunPaths};

const HEADER: &[u8] = br#"{"format":1}"#;

fn paths() -> RunPaths {
    Root::in_directory(Path::new("/")).run("r").unwrap()
}

/// The acknowledged records, and the last request.
#[derive(Default)]
struct World {
    created: bool,
    acknowledged: Vec<Vec<u8>>,
    attempted: Option<Vec<u8>>,
    dice: u64,
}

/// The failure of one process. Another process may continue.
struct GaveUp;

impl World {
    /// One process: it opens or creates the run, and appends records of these sizes.
    fn live(&mut self, memory: &Memory, sizes: &[usize]) -> Result<(), GaveUp> {
        let mut journal = self.open(memory)?;
        let blobs = Blobs::new(Arc::new(memory.clone()), paths().blobs);
        for size in sizes {
            let letter = b'a' + (splitmix(&mut self.dice) % 26) as u8;
            // Few different blobs, so that many are put again by another process.
            let blob = vec![letter; size % 3 * 3_000];
            let hash = blobs.put(&blob).map_err(|_| GaveUp)?;
            let text = String::from_utf8(vec![letter; *size]).unwrap();
            let n = splitmix(&mut self.dice);
            let body = format!(r#"{{"n":{n},"blob":"{hash}","text":"{text}"}}"#);
            self.append(&mut journal, body.into_bytes())?;
        }
        Ok(())
    }

    /// Appends a record. After a failed write that was undone, the process continues with other
    /// records.
    fn append(&mut self, journal: &mut Journal, body: Vec<u8>) -> Result<(), GaveUp> {
        match journal.append(&body) {
            Ok(seq) => {
                self.acknowledged.push(body);
                self.attempted = None;
                assert_eq!(seq, self.acknowledged.len() as u64);
                Ok(())
            }
            Err(Error::Disk(_)) => {
                self.attempted = Some(body);
                Ok(())
            }
            Err(Error::Poisoned(_)) => Err(GaveUp),
            Err(other) => panic!("{other}"),
        }
    }

    fn open(&mut self, memory: &Memory) -> Result<Journal, GaveUp> {
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        let root = Root::in_directory(Path::new("/"));
        root.ensure(memory).map_err(|_| GaveUp)?;
        paths().ensure(memory).map_err(|_| GaveUp)?;
        match Journal::open(Arc::clone(&disk), &paths().journal) {
            Ok(opened) => {
                self.compare(&opened.header, &opened.lines);
                Ok(opened.journal)
            }
            Err(Error::Missing(_) | Error::Unborn(_)) => {
                assert!(!self.created, "an acknowledged journal is gone");
                let journal = Journal::create(disk, &paths().journal, HEADER);
                let journal = journal.map_err(|_| GaveUp)?;
                self.created = true;
                Ok(journal)
            }
            Err(Error::Disk(_)) => Err(GaveUp),
            Err(other) => panic!("{other}"),
        }
    }

    /// Compares what was read with what is known, and then knows it to be durable.
    fn compare(&mut self, header: &[u8], lines: &JournalLines) {
        assert_eq!(header, HEADER);
        let found: Vec<_> = lines.iter().map(|line| line.body.to_vec()).collect();
        let (known, extra) = found.split_at(found.len().min(self.acknowledged.len()));
        assert!(known == self.acknowledged, "acknowledged records are gone");
        let invented = extra.iter().any(|body| Some(body) != self.attempted.as_ref());
        assert!(extra.len() <= 1 && !invented, "records were invented");
        self.created = true;
        self.acknowledged = found;
        self.attempted = None;
    }

    /// Reads everything in a process without faults, and continues.
    fn settle(&mut self, memory: &Memory) {
        assert!(self.live(memory, &[10]).is_ok() && self.attempted.is_none());
        let memory = memory.crash();
        assert!(self.live(&memory, &[]).is_ok());
        let blobs = Blobs::new(Arc::new(memory.clone()), paths().blobs);
        for body in &self.acknowledged {
            let value: serde_json::Value = serde_json::from_slice(body).unwrap();
            let hash = value["blob"].as_str().unwrap();
            assert!(blobs.get(hash).is_ok(), "a record names a blob that is gone");
        }
    }
}

#[test]
fn crash_at_any_call_keeps_the_records() {
    let sizes = [20, 9_000, 1, 5_000];
    let calls = |memory: &Memory| memory.call_count();
    let undisturbed = Memory::new(0);
    assert!(World::default().live(&undisturbed, &sizes).is_ok());
    let mut crashed_in = BTreeSet::new();
    for seed in 0..40 {
        for call in 0..calls(&undisturbed) {
            let memory = Memory::new(seed);
            let mut world = World::default();
            memory.plan(call, DiskFault::Crash);
            let lived = world.live(&memory, &sizes);
            assert!(lived.is_err() || world.attempted.is_some());
            let last = memory.calls().pop().unwrap();
            crashed_in.insert(last.operation);
            println!("seed {seed}, crash at call {call}: {last:?}");
            // The recovery of the first crash is crashed too, early or late.
            let memory = memory.crash();
            memory.plan(calls(&memory) + seed, DiskFault::Crash);
            let lived = world.live(&memory, &sizes);
            assert_eq!(memory.is_down(), lived.is_err() || world.attempted.is_some());
            let again = if memory.is_down() { memory.crash() } else { memory.process() };
            world.settle(&again);
        }
    }
    let used = undisturbed.calls().iter().map(|call| call.operation).collect();
    assert_eq!(crashed_in, used, "every operation in use was crashed in");
    let expected = [Operation::Open, Operation::SyncDir, Operation::Write, Operation::Sync];
    assert!(expected.iter().all(|operation| crashed_in.contains(operation)));
}

fn any_fault(dice: &mut u64) -> DiskFault {
    match splitmix(dice) % 6 {
        0 => DiskFault::Crash,
        1 => DiskFault::Short((splitmix(dice) % 9_000) as usize),
        2 => DiskFault::Full,
        3 | 4 => DiskFault::LostSync,
        _ => DiskFault::Fail(std::io::ErrorKind::Other),
    }
}

/// How many worlds are tried; more of them under `STORE_CASES=N`.
fn cases() -> u32 {
    std::env::var("STORE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// Each process is killed, or loses power, when one of its calls fails. Every second process
    /// has no faults, so that records are added in between.
    #[test]
    fn faults_at_any_calls_keep_the_records(
        seed in any::<u64>(),
        rarity in 2_u64..60,
        lives in prop::collection::vec(prop::collection::vec(0_usize..12_000, 0..5), 1..5),
    ) {
        let mut memory = Memory::new(seed);
        let mut world = World { dice: seed, ..World::default() };
        for (n, sizes) in lives.iter().enumerate() {
            let mut dice = seed.wrapping_add(n as u64);
            memory.set_hook(Some(Box::new(move |_| {
                splitmix(&mut dice)
                    .is_multiple_of(rarity)
                    .then(|| any_fault(&mut dice))
            })));
            let died = world.live(&memory, sizes).is_err() || world.attempted.is_some();
            memory.set_hook(None);
            memory.set_capacity(None);
            memory = match (memory.is_down(), died && seed % 2 == n as u64 % 2) {
                (true, _) | (false, true) => memory.crash(),
                (false, false) => {
                    memory.kill();
                    memory.process()
                }
            };
            if n % 2 == 1 {
                prop_assert!(world.live(&memory, &[100, 5_000]).is_ok() && world.attempted.is_none());
                memory = memory.crash();
            }
        }
        world.settle(&memory);
    }
}

#[test]
fn crashed_rewind_loses_no_byte() {
    let path = Path::new("/journal.jsonl");
    for (seed, call) in (0..30).flat_map(|seed| (0..25).map(move |call| (seed, call))) {
        let memory = Memory::new(seed);
        let mut journal = Journal::create(Arc::new(memory.clone()), path, b"{\"h\":0}").unwrap();
        for n in 1..=4 {
            let body = format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(3_000));
            journal.append(body.as_bytes()).unwrap();
        }
        let whole = content(&memory, path);
        memory.plan(memory.call_count() + call, DiskFault::Crash);
        let cut = Journal::truncate_to(&memory, path, 2, b"{\"n\":\"cut\"}");
        let memory = memory.crash();
        let lines = Journal::open(Arc::new(memory.clone()), path).unwrap().lines;
        match lines.len() {
            4 => assert!(cut.is_err(), "seed {seed} call {call}"),
            3 => {
                let (kept, moved) =
                    (content(&memory, path), content(&memory, Path::new("/journal.discarded-2")));
                let (before, after) = whole.split_at(whole.len() - moved.len());
                assert!(kept.starts_with(before), "seed {seed} call {call}");
                assert_eq!(moved, after, "seed {seed} call {call}");
            }
            n => panic!("{n} records: seed {seed} call {call}"),
        }
    }
}

fn content(memory: &Memory, path: &Path) -> Vec<u8> {
    let mut file = memory.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}
