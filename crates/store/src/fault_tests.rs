//! Tests of the effect of one fault on one operation. Random combinations are in `tests/crash.rs`.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::ballast::{Freed, SIZE};
use crate::disk::memory::{DiskFault, Operation, PAGE};
use crate::disk::{Disk as _, DiskErrorKind, Memory, OpenMode};
use crate::host::Life;
use crate::journal::{Error, JournalLines};
use crate::lock::{self, Claim, Takeover};
use crate::{Ballast, Blobs, Inbox, Journal, Lock, atomic_file, blobs, inbox};

const JOURNAL: &str = "/journal.jsonl";

fn create(memory: &Memory) -> Journal {
    Journal::create(Arc::new(memory.clone()), Path::new(JOURNAL), b"{\"h\":0}").unwrap()
}

fn open(memory: &Memory) -> Result<JournalLines, Error> {
    Journal::open(Arc::new(memory.clone()), Path::new(JOURNAL)).map(|opened| opened.lines)
}

fn bodies(lines: &JournalLines) -> Vec<&str> {
    let bodies = lines.iter().map(|line| str::from_utf8(line.body).unwrap());
    bodies.collect()
}

fn fail(memory: &Memory, operation: Operation, fault: DiskFault) {
    memory.set_hook(Some(Box::new(move |call| (call.operation == operation).then_some(fault))));
}

/// The operations that `act` calls.
fn operations(memory: &Memory, act: impl FnOnce()) -> Vec<Operation> {
    let before = memory.calls().len();
    act();
    let calls = memory.calls();
    calls[before..].iter().map(|call| call.operation).collect()
}

#[test]
fn an_append_is_one_write_and_one_sync() {
    let memory = Memory::new(0);
    let mut journal = create(&memory);
    let called = operations(&memory, || drop(journal.append(b"{\"n\":1}")));
    assert_eq!(called, [Operation::Size, Operation::Write, Operation::Sync]);
}

#[test]
fn record_of_another_owner_is_never_overwritten() {
    let memory = Memory::new(0);
    let mut journal = create(&memory);
    let mut intruder = Journal::open(Arc::new(memory.clone()), Path::new(JOURNAL)).unwrap().journal;
    intruder.append(b"{\"n\":1}").unwrap();
    let touched = journal.append(b"{\"n\":2}").unwrap_err();
    assert!(matches!(touched, Error::ChangedByOther(_)), "{touched}");
    let poisoned = journal.append(b"{\"n\":2}").unwrap_err();
    assert!(matches!(poisoned, Error::Poisoned(_)), "{poisoned}");
    assert_eq!(bodies(&open(&memory).unwrap()), ["{\"n\":1}"]);
}

#[test]
fn short_write_is_undone_and_tried_again() {
    let memory = Memory::new(0);
    let mut journal = create(&memory);
    memory.plan(memory.call_count() + 1, DiskFault::Short(5));
    let called = operations(&memory, || {
        assert_eq!(journal.append(b"{\"n\":1}").unwrap(), 1);
    });
    let undone = [Operation::Write, Operation::Truncate, Operation::Sync];
    assert_eq!(called[1..4], undone);
    assert_eq!(called[4..], [Operation::Write, Operation::Sync]);
    fail(&memory, Operation::Write, DiskFault::Short(5));
    let failed = journal.append(b"{\"n\":2}").unwrap_err();
    assert!(matches!(failed, Error::Disk(_)), "{failed}");
    memory.set_hook(None);
    assert_eq!(journal.append(b"{\"n\":3}").unwrap(), 2);
    assert_eq!(bodies(&open(&memory.crash()).unwrap()), ["{\"n\":1}", "{\"n\":3}"]);
}

#[test]
fn ballast_makes_room_for_a_record() {
    let memory = Memory::new(0);
    let ballast = Ballast::new(Arc::new(memory.clone()), "/ballast".into());
    ballast.fill().unwrap();
    let mut journal = create(&memory).with_ballast(ballast.clone());
    memory.plan(memory.call_count() + 1, DiskFault::Full);
    assert_eq!(journal.append(b"{\"n\":1}").unwrap(), 1);
    assert_eq!(ballast.free().unwrap(), Freed::Nothing);
    memory.set_capacity(Some(memory.used()));
    match journal.append(b"{\"n\":2}").unwrap_err() {
        Error::Disk(error) => assert_eq!(error.kind(), DiskErrorKind::Full),
        other => panic!("{other}"),
    }
    memory.set_capacity(None);
    assert_eq!(journal.append(b"{\"n\":3}").unwrap(), 2);
    assert_eq!(bodies(&open(&memory.crash()).unwrap()), ["{\"n\":1}", "{\"n\":3}"]);
}

#[test]
fn ballast_makes_room_for_a_blob() {
    let memory = Memory::new(0);
    let ballast = Ballast::new(Arc::new(memory.clone()), "/ballast".into());
    ballast.fill().unwrap();
    memory.create_dir(Path::new("/blobs")).unwrap();
    memory.set_capacity(Some(SIZE + 10));
    let blobs = Blobs::new(Arc::new(memory.clone()), "/blobs".into()).with_ballast(ballast);
    let hash = blobs.put(&vec![7; 20_000]).unwrap();
    assert_eq!(blobs.get(&hash).unwrap(), vec![7; 20_000]);
    assert_eq!(memory.used(), 20_000);
}

#[test]
fn swept_request_is_written_again() {
    let memory = Memory::new(0);
    memory.create_dir(Path::new("/inbox")).unwrap();
    let inbox = Inbox::new(Arc::new(memory.clone()), "/inbox".into());
    let gone = DiskFault::Fail(ErrorKind::NotFound);
    let mut first = Some(gone);
    memory.set_hook(Some(Box::new(move |call| {
        if call.operation == Operation::Rename { first.take() } else { None }
    })));
    inbox.post("a", b"{}").unwrap();
    assert_eq!(memory.list(Path::new("/inbox")).unwrap(), ["a.json"]);
    fail(&memory, Operation::Rename, gone);
    inbox.post("b", b"{}").unwrap_err();
}

#[test]
fn sweep_ignores_files_that_vanish() {
    let memory = Memory::new(0);
    let root = Path::new("/");
    let sweep = || atomic_file::sweep(&memory, root, |_| true).map_err(|error| error.kind());
    drop(memory.open(Path::new("/.temporary-0-a"), OpenMode::New).unwrap());
    for operation in [Operation::List, Operation::Remove] {
        fail(&memory, operation, DiskFault::Fail(ErrorKind::NotFound));
        sweep().unwrap();
        fail(&memory, operation, DiskFault::Fail(ErrorKind::PermissionDenied));
        sweep().unwrap_err();
    }
    memory.set_hook(None);
    assert_eq!(memory.list(root).unwrap().len(), 1);
    sweep().unwrap();
    assert!(memory.list(root).unwrap().is_empty());
}

#[test]
fn ballast_is_freed_only_on_a_full_disk() {
    use Operation::{Sync, Write};
    let check = |operation, fault, expected: Freed| {
        let memory = Memory::new(0);
        let path = Path::new("/ballast");
        drop(memory.open(path, OpenMode::New).unwrap());
        let ballast = Ballast::new(Arc::new(memory.clone()), path.into());
        let mut journal = create(&memory).with_ballast(ballast.clone());
        fail(&memory, operation, fault);
        assert!(matches!(journal.append(b"{\"n\":1}"), Err(Error::Disk(_))));
        memory.set_hook(None);
        assert_eq!(ballast.free().unwrap(), expected, "{operation:?} {fault:?}");
    };
    check(Write, DiskFault::Short(5), Freed::Nothing);
    check(Write, DiskFault::Fail(ErrorKind::StorageFull), Freed::Nothing);
    check(Write, DiskFault::Fail(ErrorKind::Other), Freed::Room);
    check(Sync, DiskFault::Fail(ErrorKind::QuotaExceeded), Freed::Nothing);
    check(Sync, DiskFault::Fail(ErrorKind::Other), Freed::Room);
}

#[test]
fn refused_access_is_not_a_missing_file() {
    let memory = Memory::new(0);
    let disk = Arc::new(memory.clone());
    let inbox = Inbox::new(disk.clone(), "/".into());
    let ballast = Ballast::new(disk, "/ballast".into());
    let denied = |operation| fail(&memory, operation, DiskFault::Fail(ErrorKind::PermissionDenied));
    denied(Operation::Remove);
    assert_eq!(ballast.free().unwrap_err().kind(), DiskErrorKind::Denied);
    let kept = inbox.remove("k").unwrap_err();
    assert_eq!(kept.to_string(), "could not remove /k.json: permission denied");
    denied(Operation::List);
    let unread = inbox.take_all().unwrap_err();
    assert_eq!(unread.to_string(), "could not list /: permission denied");
    denied(Operation::Metadata);
    let unknown = inbox.post("k", b"{}").unwrap_err();
    assert_eq!(unknown.to_string(), "could not look at /k.json: permission denied");
    denied(Operation::Open);
    let unknown = Lock::owner(&memory, &memory, Path::new("/lock")).unwrap_err();
    assert_eq!(unknown.to_string(), "could not open the lock /lock: permission denied");
}

#[test]
fn refused_journal_is_not_missing() {
    let memory = Memory::new(0);
    let (disk, path) = (Arc::new(memory.clone()), Path::new(JOURNAL));
    assert!(matches!(open(&memory), Err(Error::Missing(_))));
    assert!(matches!(Journal::read(&memory, path), Err(Error::Missing(_))));
    fail(&memory, Operation::Open, DiskFault::Fail(ErrorKind::PermissionDenied));
    let told = |error: Error| error.to_string();
    let unmade = Journal::create(disk, path, b"{\"h\":0}").map_err(told).unwrap_err();
    assert_eq!(unmade, "could not create the journal /journal.jsonl: permission denied");
    let unopened = "could not open /journal.jsonl: permission denied";
    assert_eq!(open(&memory).map_err(told).unwrap_err(), unopened);
    assert_eq!(Journal::read(&memory, path).map_err(told).unwrap_err(), unopened);
}

#[test]
fn journal_is_not_rewound_without_its_copy() {
    let memory = Memory::new(0);
    create(&memory).append(b"{\"n\":1}").unwrap();
    memory.set_hook(Some(Box::new(|call| {
        let denied = DiskFault::Fail(ErrorKind::PermissionDenied);
        (call.path == Path::new("/journal.discarded-0")).then_some(denied)
    })));
    let cut = Journal::truncate_to(&memory, Path::new(JOURNAL), 0, b"{\"n\":2}").unwrap_err();
    assert_eq!(cut.to_string(), "could not create /journal.discarded-0: permission denied");
    assert_eq!(format!("{:?}", open(&memory).unwrap()), "[1 {\"n\":1}]");
}

#[test]
fn failed_atomic_write_leaves_nothing_behind() {
    let memory = Memory::new(0);
    memory.set_capacity(Some(5));
    let disk = Arc::new(memory.clone());
    let full = Blobs::new(disk.clone(), "/".into()).put(b"content").unwrap_err();
    assert!(matches!(full, blobs::Error::Disk(_)), "{full}");
    let full = Inbox::new(disk, "/".into()).post("k", b"{\"n\":1}").unwrap_err();
    assert!(matches!(full, inbox::Error::Disk(_)), "{full}");
    assert_eq!(memory.list(Path::new("/")).unwrap(), [""; 0]);
}

#[test]
fn failed_sync_poisons_the_journal_until_reopened() {
    // Its first page is none that the next record is written to.
    let long = format!("{{\"n\":\"{}\"}}", "2".repeat(2 * PAGE));
    for seed in 0..50 {
        let memory = Memory::new(seed);
        let mut journal = create(&memory);
        journal.append(b"{\"n\":1}").unwrap();
        memory.plan(memory.call_count() + 2, DiskFault::LostSync);
        let failed = journal.append(long.as_bytes()).unwrap_err();
        assert!(matches!(failed, Error::Disk(_)), "{failed}");
        let called = operations(&memory, || {
            let refused = journal.append(b"{\"n\":3}").unwrap_err();
            assert!(matches!(refused, Error::Poisoned(_)), "{refused}");
        });
        assert_eq!(called, [], "nothing is retried");
        let seen = Journal::open(Arc::new(memory.clone()), Path::new(JOURNAL)).unwrap();
        assert_eq!(bodies(&seen.lines), ["{\"n\":1}", &long]);
        let mut journal = seen.journal;
        journal.append(b"{\"n\":4}").unwrap();
        let survived = open(&memory.crash()).unwrap();
        assert_eq!(bodies(&survived), ["{\"n\":1}", &long, "{\"n\":4}"], "seed {seed}");
    }
}

#[test]
fn a_failed_undo_poisons_the_journal() {
    let memory = Memory::new(0);
    let mut journal = create(&memory);
    memory.plan(memory.call_count() + 1, DiskFault::Short(3));
    memory.plan(memory.call_count() + 2, DiskFault::Fail(ErrorKind::Other));
    assert!(matches!(journal.append(b"{\"n\":1}"), Err(Error::Disk(_))));
    assert!(matches!(journal.append(b"{\"n\":1}"), Err(Error::Poisoned(_))));
    assert!(matches!(journal.restore(), Err(Error::Poisoned(_))));
    assert!(open(&memory).unwrap().is_empty());
}

#[test]
fn opening_makes_unsynced_records_durable() {
    for seed in 0..50 {
        let memory = Memory::new(seed);
        // Killed before the directory was synced.
        fail(&memory, Operation::SyncDir, DiskFault::Fail(ErrorKind::Other));
        let path = Path::new(JOURNAL);
        assert!(Journal::create(Arc::new(memory.clone()), path, b"{\"h\":0}").is_err());
        memory.kill();
        memory.set_hook(None);
        let next = memory.process();
        assert!(open(&next).unwrap().is_empty());
        assert!(open(&next.crash()).is_ok(), "seed {seed}");
    }
}

#[test]
fn posted_request_survives_a_crash_whole() {
    for (seed, call) in (0..30).flat_map(|seed| (0..8).map(move |call| (seed, call))) {
        let memory = Memory::new(seed);
        let inbox = |memory: &Memory| Inbox::new(Arc::new(memory.clone()), "/".into());
        memory.plan(call, DiskFault::Crash);
        let posted = inbox(&memory).post("k", b"{\"stop\":true}");
        let taken = inbox(&memory.crash()).take_all().unwrap();
        assert_eq!(taken.invalid, [], "seed {seed} call {call}");
        let found: Vec<_> = taken.messages.iter().map(|m| m.bytes.as_slice()).collect();
        match found.as_slice() {
            [] => assert!(posted.is_err(), "seed {seed} call {call}"),
            found => assert_eq!(found, [b"{\"stop\":true}"]),
        }
    }
}

#[test]
fn blob_of_another_process_is_synced_before_use() {
    for seed in 0..50 {
        let memory = Memory::new(seed);
        let blobs = |memory: &Memory| Blobs::new(Arc::new(memory.clone()), "/".into());
        fail(&memory, Operation::SyncDir, DiskFault::Fail(ErrorKind::Other));
        assert!(blobs(&memory).put(b"content").is_err());
        memory.kill();
        memory.set_hook(None);
        let next = memory.process();
        let hash = blobs(&next).put(b"content").unwrap();
        assert_eq!(blobs(&next.crash()).get(&hash).unwrap(), b"content", "seed {seed}");
    }
}

#[test]
fn stored_blob_is_verified_only_once() {
    use Operation::{Metadata, Open, Read, Size, SyncDir};
    let memory = Memory::new(0);
    let blobs = |memory: &Memory| Blobs::new(Arc::new(memory.clone()), "/".into());
    let first = blobs(&memory);
    let put = |blobs: &Blobs| operations(&memory, || drop(blobs.put(b"content").unwrap()));
    assert!(put(&first).contains(&Operation::Write));
    assert_eq!(put(&first), [Metadata]);
    let second = blobs(&memory);
    assert_eq!(put(&second), [Open, Size, Read, SyncDir]);
    assert_eq!(put(&second), [Metadata]);
}

#[test]
fn blob_is_stored_in_a_vanished_directory() {
    let memory = Memory::new(0);
    let blobs = Blobs::new(Arc::new(memory), "/runs/r/blobs".into());
    let hash = blobs.put(b"content").unwrap();
    assert_eq!(blobs.get(&hash).unwrap(), b"content");
}

// proves: P9
#[test]
fn no_second_owner_is_admitted() {
    let path = Path::new("/lock");
    let take = |memory: &Memory, takeover| {
        let claim = Claim { since: 1, version: "1", takeover };
        Lock::take(memory, memory, path, claim)
    };
    let life = |memory: &Memory| Lock::owner(memory, memory, path).unwrap().map(|(_, life)| life);
    let first = Memory::new(3);
    let second = first.process();
    let far = first.process_on("far");
    let lock = take(&first, Takeover::Never).unwrap();
    for (who, takeover) in [(&second, Takeover::Never), (&far, Takeover::OtherHost)] {
        let refused = take(who, takeover).unwrap_err();
        assert!(matches!(refused, lock::Error::Held { owner: Some(_), .. }), "{refused}");
    }
    assert_eq!((life(&second), life(&far)), (Some(Life::Alive), Some(Life::Elsewhere)));
    first.kill();
    drop(lock);
    assert_eq!(life(&second), Some(Life::Gone));
    let refused = take(&far, Takeover::Never).unwrap_err();
    assert!(matches!(refused, lock::Error::OtherHost { .. }), "{refused}");
    let lock = take(&second, Takeover::Never).unwrap();
    second.kill();
    drop(lock);
    let lock = take(&far, Takeover::OtherHost).unwrap();
    let rebooted = first.crash();
    drop(lock);
    let after = take(&rebooted, Takeover::OtherHost).unwrap();
    assert!(after.is_in_place().unwrap());
}

#[test]
fn a_vanished_lock_is_noticed() {
    let memory = Memory::new(0);
    let claim = Claim { since: 1, version: "1", takeover: Takeover::Never };
    let lock = Lock::take(&memory, &memory, Path::new("/lock"), claim).unwrap();
    memory.remove(Path::new("/lock")).unwrap();
    assert!(!lock.is_in_place().unwrap());
}
