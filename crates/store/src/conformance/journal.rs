//! The rules of the journal that hold on every disk.
//!
//! Torn and damaged journals are written as files here, because a real disk cannot be made to lose
//! data. The effects of failed writes and power cuts are checked in `fault_tests`, on the simulated
//! disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Check, Fixture};
use crate::disk::Disk;
use crate::journal::{Damage, Damaged, Error, Journal, JournalLines, Opened, Presence, Tail, Torn};

pub(super) const CHECKS: &[Check] = &[
    appended_records_are_read_back,
    a_journal_is_created_once,
    torn_tail_is_removed_saved_and_reported,
    damage_is_named_and_refused,
    rewind_saves_the_discarded_records,
    reopening_does_not_verify_again,
    reopening_verifies_a_changed_journal,
    a_reader_follows_the_writer,
    reader_notices_a_rewind,
    a_vanished_journal_is_restored,
];

const HEADER: &[u8] = br#"{"format":1}"#;

fn body(n: u64) -> Vec<u8> {
    format!(r#"{{"seq":{n}}}"#).into_bytes()
}

fn disk(on: &Fixture) -> Arc<dyn Disk> {
    Arc::clone(&on.disk)
}

/// A journal with the records 1 to `count`.
fn written(on: &Fixture, count: u64) -> PathBuf {
    let path = on.path("journal.jsonl");
    let mut journal = Journal::create(disk(on), &path, HEADER).expect("it is created");
    for n in 1..=count {
        assert_eq!(journal.append(&body(n)).expect("it is appended"), n);
    }
    path
}

fn assert_records(lines: &JournalLines, expected: std::ops::RangeInclusive<u64>) {
    let found: Vec<_> = lines.iter().map(|l| (l.seq, l.body.to_vec())).collect();
    let expected: Vec<_> = expected.map(|n| (n, body(n))).collect();
    assert_eq!(found, expected);
}

/// Where record `seq` starts.
fn offset(on: &Fixture, path: &Path, seq: u64) -> usize {
    let content = on.content(path);
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    lines.take(usize::try_from(seq).unwrap_or(0)).map(<[u8]>::len).sum()
}

fn appended_records_are_read_back(on: &Fixture) {
    let path = written(on, 3);
    let opened = Journal::open(disk(on), &path).expect("it opens");
    assert_eq!(opened.header, HEADER);
    assert_eq!(opened.torn, None);
    assert_records(&opened.lines, 1..=3);
    let mut journal = opened.journal;
    assert_eq!(journal.seq(), 3);
    assert_eq!(opened.lines.last().map(|line| line.sum), Some(journal.sum()));
    assert_eq!(journal.append(&body(4)).expect("it is appended"), 4);
    let read = Journal::read(disk(on).as_ref(), &path).expect("it is read");
    assert_records(&read.lines, 1..=4);
    assert_eq!((read.tail, read.cursor), (Tail::Clean, journal.end()));
    for line in on.content(&path).split_inclusive(|byte| *byte == b'\n') {
        let value: serde_json::Value = serde_json::from_slice(line).expect("it is JSON");
        assert!(value.get("sum").is_some_and(serde_json::Value::is_string));
    }
}

fn a_journal_is_created_once(on: &Fixture) {
    let path = on.path("journal.jsonl");
    let missing = Journal::open(disk(on), &path).expect_err("it is missing");
    assert!(matches!(missing, Error::Missing(_)), "{missing}");
    for unfinished in [&b""[..], b"{\"for", &[0; 60]] {
        on.write("journal.jsonl", unfinished);
        let unborn = Journal::open(disk(on), &path).expect_err("it is not finished");
        assert!(matches!(unborn, Error::Unborn(_)), "{unborn}");
        let unborn = Journal::truncate_to(on.disk.as_ref(), &path, 0, &body(1))
            .expect_err("it is not finished");
        assert!(matches!(unborn, Error::Unborn(_)), "{unborn}");
    }
    Journal::create(disk(on), &path, HEADER).expect("it is created after all");
    let exists = Journal::create(disk(on), &path, HEADER).expect_err("it exists");
    assert!(matches!(exists, Error::Exists(_)), "{exists}");
    let refused = Journal::create(disk(on), &on.path("other"), b"{}").expect_err("it is empty");
    assert!(matches!(refused, Error::Body(_)), "{refused}");
}

fn torn_tail_is_removed_saved_and_reported(on: &Fixture) {
    let path = written(on, 2);
    let good = on.content(&path);
    // An interrupted write, a line with a lost part, and a lost page: the forms that a power cut
    // leaves.
    for (kept, torn) in [
        ("journal.torn-3", &b"{\"seq\":3"[..]),
        ("journal.torn-3.2", b"{\"seq\0\0\0\0\0\"}\n"),
        ("journal.torn-3.3", &[0; 5000]),
    ] {
        on.write("journal.jsonl", &[&good, torn].concat());
        let expected =
            |kept| Torn { seq: 3, offset: good.len() as u64, length: torn.len() as u64, kept };
        let read = Journal::read(disk(on).as_ref(), &path).expect("it is read");
        assert_eq!(read.tail, Tail::Torn(expected(None)));
        assert_records(&read.lines, 1..=2);
        let opened = Journal::open(disk(on), &path).expect("it opens");
        assert_eq!(opened.torn, Some(expected(Some(on.path(kept)))));
        assert_records(&opened.lines, 1..=2);
        assert_eq!(on.content(&on.path(kept)), torn);
        assert_eq!(on.content(&path), good);
    }
}

fn damage_is_named_and_refused(on: &Fixture) {
    let path = written(on, 3);
    let good = on.content(&path);
    let check = |change: &dyn Fn(&mut Vec<u8>), seq, damage| {
        let mut bytes = good.clone();
        change(&mut bytes);
        on.write("journal.jsonl", &bytes);
        let expected = Damaged { seq, offset: offset(on, &path, seq) as u64, damage };
        match Journal::open(disk(on), &path) {
            Err(Error::Damaged { damaged, .. }) => assert_eq!(damaged, expected),
            other => assert!(other.is_err_and(|_| false), "it opened, or failed otherwise"),
        }
        assert_eq!(on.content(&path), bytes);
        // A journal with a damaged header cannot be read at all: all checksums are chained to it.
        if seq > 0 {
            let read = Journal::read(disk(on).as_ref(), &path).expect("it is read");
            assert_eq!(read.tail, Tail::Damaged(expected));
            assert_records(&read.lines, 1..=seq - 1);
        }
    };
    let second = offset(on, &path, 2);
    check(&|bytes| bytes[second + 7] = b'9', 2, Damage::Sum);
    check(&|bytes| bytes[second + 3..second + 9].fill(0), 2, Damage::Hole);
    check(&|bytes| bytes[second + 10] = b'\n', 2, Damage::Shape);
    check(&|bytes| drop(bytes.drain(second..second + 52)), 2, Damage::Sum);
    check(&|bytes| bytes[2] = b'F', 0, Damage::Sum);
    let last = good.len() - 10;
    check(&|bytes| bytes[last] ^= 1, 3, Damage::Sum);
}

fn rewind_saves_the_discarded_records(on: &Fixture) {
    let path = written(on, 4);
    let mut damaged = on.content(&path);
    let (second, third) = (offset(on, &path, 2), offset(on, &path, 3));
    damaged[third + 3] = b'x';
    on.write("journal.jsonl", &damaged);
    let after = |last| Journal::lines_after(on.disk.as_ref(), &path, last).expect("it is read");
    assert_eq!((after(2).len(), after(2).concat()), (2, damaged[third..].to_vec()));
    assert!(after(4).is_empty() && after(9).is_empty());
    on.write("journal.jsonl", &[&damaged, &b"half"[..]].concat());
    assert_eq!(after(2).concat(), &damaged[third..], "a line that was never finished says nothing");
    on.write("journal.jsonl", &damaged);
    let beyond =
        Journal::truncate_to(on.disk.as_ref(), &path, 3, &body(4)).expect_err("it is not good");
    assert!(matches!(beyond, Error::NoSuchRecord { wanted: 3, last: 2, .. }), "{beyond}");
    let moved = Journal::truncate_to(on.disk.as_ref(), &path, 2, &body(3)).expect("it is cut");
    assert_eq!(moved, Some(on.path("journal.discarded-2")));
    assert_eq!(on.content(&on.path("journal.discarded-2")), &damaged[third..]);
    let Opened { mut journal, lines, .. } = Journal::open(disk(on), &path).expect("it opens");
    assert_records(&lines, 1..=3);
    assert_eq!(journal.append(&body(4)).expect("it is appended"), 4);
    let again =
        Journal::truncate_to(on.disk.as_ref(), &path, 2, &body(3)).expect("it is cut again");
    assert_eq!(again, Some(on.path("journal.discarded-2.2")));
    assert_eq!(on.content(&on.path("journal.discarded-2")), &damaged[third..]);
    let nothing =
        Journal::truncate_to(on.disk.as_ref(), &path, 3, &body(4)).expect("nothing is cut");
    assert_eq!(nothing, None);
    let lines = || Journal::read(on.disk.as_ref(), &path).expect("it is read").lines;
    assert_records(&lines(), 1..=4);
    Journal::truncate_to(on.disk.as_ref(), &path, 0, &body(1)).expect("only the header stays");
    assert_records(&lines(), 1..=1);
    assert_eq!(on.content(&path).len(), second);
}

fn reopening_does_not_verify_again(on: &Fixture) {
    let path = written(on, 3);
    let before = Journal::read(on.disk.as_ref(), &path).expect("it is read");
    let mut content = on.content(&path);
    let second = offset(on, &path, 2);
    // Before the last line, so that only a complete verification could notice it.
    content[second - 47] = b'x';
    on.write("journal.jsonl", &content);
    let opened = Journal::reopen(disk(on), &path, before).expect("it opens");
    assert_eq!((&*opened.header, opened.torn), (HEADER, None));
    assert_records(&opened.lines, 1..=3);
    assert_eq!(on.content(&path), content);
    let mut journal = opened.journal;
    assert_eq!(journal.append(&body(4)).expect("it is appended"), 4);
    let refused = Journal::open(disk(on), &path).expect_err("it is damaged");
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
}

fn reopening_verifies_a_changed_journal(on: &Fixture) {
    let path = written(on, 3);
    let read = || Journal::read(on.disk.as_ref(), &path).expect("it is read");
    let reopen = |read| Journal::reopen(disk(on), &path, read);
    let (before, good) = (read(), on.content(&path));
    let mut journal = Journal::open(disk(on), &path).expect("it opens").journal;
    journal.append(&body(4)).expect("it is appended");
    let opened = reopen(before).expect("it opens");
    assert_records(&opened.lines, 1..=4);
    assert_eq!(opened.journal.end(), journal.end());

    on.write("journal.jsonl", &[&good, &b"half"[..]].concat());
    let torn = reopen(read()).expect("it opens").torn.expect("it is torn");
    assert_eq!(torn.length, 4);
    assert_eq!(on.content(&path), good);

    let before = read();
    let third = offset(on, &path, 3);
    let mut other = good.clone();
    other[third + 2] ^= 1;
    on.write("journal.jsonl", &other);
    let refused = reopen(before).expect_err("its last line is another");
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");

    on.write("journal.jsonl", &good[..offset(on, &path, 1)]);
    let opened = reopen(read()).expect("it opens");
    assert!(opened.lines.is_empty());
    let before = read();
    on.disk.remove(&path).expect("it is removed");
    let missing = reopen(before).expect_err("it is gone");
    assert!(matches!(missing, Error::Missing(_)), "{missing}");
}

fn a_reader_follows_the_writer(on: &Fixture) {
    let path = written(on, 1);
    let mut cursor = Journal::read(on.disk.as_ref(), &path).expect("it is read").cursor;
    let mut follow = || Journal::follow(on.disk.as_ref(), &path, &mut cursor);
    assert!(follow().expect("it is read").is_empty());
    let mut journal = Journal::open(disk(on), &path).expect("it opens").journal;
    for n in 2..=3 {
        journal.append(&body(n)).expect("it is appended");
    }
    assert_records(&follow().expect("it is read"), 2..=3);
    let good = on.content(&path);
    on.write("journal.jsonl", &[&good, &b"{\"seq\":4"[..]].concat());
    assert!(follow().expect("it is under way").is_empty());
    on.write("journal.jsonl", &[&good, &b"{\"seq\":4}\n"[..]].concat());
    let damaged = follow().expect_err("it is damaged");
    assert!(matches!(damaged, Error::Damaged { .. }), "{damaged}");
}

fn reader_notices_a_rewind(on: &Fixture) {
    let path = written(on, 3);
    let mut cursor = Journal::read(on.disk.as_ref(), &path).expect("it is read").cursor;
    Journal::truncate_to(on.disk.as_ref(), &path, 1, &body(4)).expect("it is cut");
    let mut follow = || Journal::follow(on.disk.as_ref(), &path, &mut cursor);
    let rewound = follow().expect_err("it is shorter");
    assert!(matches!(rewound, Error::Rewound(_)), "{rewound}");
    let mut journal = Journal::open(disk(on), &path).expect("it opens").journal;
    // Now the journal is longer than before, so its size alone does not show the rewind.
    for n in 5..=9 {
        journal.append(&body(n)).expect("it is appended");
    }
    let rewound = follow().expect_err("it is another history");
    assert!(matches!(rewound, Error::Rewound(_)), "{rewound}");
}

fn a_vanished_journal_is_restored(on: &Fixture) {
    let directory = on.path("run");
    on.disk.create_dir(&directory).expect("it is created");
    let path = directory.join("journal.jsonl");
    let mut journal = Journal::create(disk(on), &path, HEADER).expect("it is created");
    journal.append(&body(1)).expect("it is appended");
    assert_eq!(journal.restore().expect("it is there"), Presence::Present);
    on.disk.remove(&path).expect("it is removed");
    on.disk.remove(&directory).expect("it is removed");
    assert_eq!(journal.restore().expect("it is restored"), Presence::Restored);
    journal.append(&body(2)).expect("it is appended");
    let opened = Journal::open(disk(on), &path).expect("it opens");
    assert_records(&opened.lines, 1..=2);
    on.disk.remove(&path).expect("it is removed");
    // Another file at the path may be the journal of a new run, which must not be overwritten.
    on.write("run/journal.jsonl", b"other");
    let replaced = journal.restore().expect_err("it is another file");
    assert!(matches!(replaced, Error::Replaced(_)), "{replaced}");
}
