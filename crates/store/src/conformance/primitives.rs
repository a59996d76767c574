//! The operations of the interface to files, [`Disk`](crate::disk::Disk).

use std::fs::TryLockError;
use std::io::ErrorKind;

use super::{Check, Fixture};
use crate::disk::{Metadata, OpenMode};

pub(super) const CHECKS: &[Check] = &[
    files_open_in_the_requested_mode,
    writing_and_truncating_change_content_and_size,
    names_are_listed_renamed_and_removed,
    an_open_file_outlives_its_name,
    a_file_has_one_lock,
];

fn files_open_in_the_requested_mode(on: &Fixture) {
    let check = |name: &str, how, expected: Option<ErrorKind>| {
        let opened = on.disk.open(&on.path(name), how);
        assert_eq!(opened.err().map(|error| error.kind()), expected, "{name} {how:?}");
    };
    check("f", OpenMode::Read, Some(ErrorKind::NotFound));
    check("f", OpenMode::Write, Some(ErrorKind::NotFound));
    check("f", OpenMode::New, None);
    check("f", OpenMode::New, Some(ErrorKind::AlreadyExists));
    check("f", OpenMode::Read, None);
    check("f", OpenMode::Write, None);
    check("f", OpenMode::Create, None);
    check("g", OpenMode::Create, None);
    check("no/f", OpenMode::Create, Some(ErrorKind::NotFound));
    on.disk.create_dir(&on.path("d")).expect("it is created");
    check("d", OpenMode::Read, Some(ErrorKind::IsADirectory));
    let mut file = on.disk.open(&on.path("f"), OpenMode::Read).expect("it opens");
    assert!(file.write_at(0, b"x").is_err());
    assert!(file.truncate(1).is_err());
}

fn writing_and_truncating_change_content_and_size(on: &Fixture) {
    let path = on.path("f");
    let mut file = on.disk.open(&path, OpenMode::New).expect("it opens");
    let check = |expected: &[u8]| {
        assert_eq!(on.content(&path), expected);
        assert_eq!(on.size(&path), expected.len() as u64);
    };
    file.write_at(0, b"abc").expect("it is written");
    check(b"abc");
    file.write_at(3, b"def").expect("it is written");
    check(b"abcdef");
    file.write_at(1, b"BC").expect("it is written");
    check(b"aBCdef");
    file.truncate(2).expect("it is cut");
    check(b"aB");
    file.write_at(4, b"x").expect("it is written");
    check(b"aB\0\0x");
    file.sync().expect("it is synced");
    let mut buffer = [0; 3];
    assert_eq!(file.read_at(3, &mut buffer).expect("it is read"), 2);
    assert_eq!(file.read_at(9, &mut buffer).expect("it is read"), 0);
}

fn names_are_listed_renamed_and_removed(on: &Fixture) {
    let directory = on.path("d");
    on.disk.create_dir(&directory).expect("it is created");
    let again = on.disk.create_dir(&directory).expect_err("it exists");
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    on.write("d/b", b"1");
    on.write("d/a", b"2");
    assert_eq!(on.names(&directory), ["a", "b"]);
    let not_empty = on.disk.remove(&directory).expect_err("it is not empty");
    assert_eq!(not_empty.kind(), ErrorKind::DirectoryNotEmpty);
    let (a, b) = (on.path("d/a"), on.path("d/b"));
    on.disk.rename(&a, &b).expect("it replaces the other");
    assert_eq!(on.content(&b), b"2");
    let gone = on.disk.rename(&a, &b).expect_err("it is gone");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    on.disk.sync_dir(&directory).expect("it is synced");
    on.disk.remove(&b).expect("it is removed");
    let gone = on.disk.remove(&b).expect_err("it is gone");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert_eq!(on.disk.metadata(&directory).ok(), Some(Metadata::Directory));
    on.disk.remove(&directory).expect("it is empty");
    let gone = on.disk.list(&directory).expect_err("it is gone");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert!(on.disk.sync_dir(&directory).is_err());
}

fn an_open_file_outlives_its_name(on: &Fixture) {
    let path = on.write("f", b"abc");
    let mut file = on.disk.open(&path, OpenMode::Write).expect("it opens");
    assert!(file.is_at(&path).expect("it is looked at"));
    on.disk.remove(&path).expect("it is removed");
    assert!(!file.is_at(&path).expect("it is looked at"));
    on.write("f", b"other");
    assert!(!file.is_at(&path).expect("it is looked at"));
    file.write_at(3, b"d").expect("it is written");
    let mut buffer = [0; 8];
    assert_eq!(file.read_at(0, &mut buffer).expect("it is read"), 4);
    assert_eq!(&buffer[..4], b"abcd");
    assert_eq!(on.content(&path), b"other");
}

fn a_file_has_one_lock(on: &Fixture) {
    let path = on.write("f", b"");
    let open = || on.disk.open(&path, OpenMode::Write).expect("it opens");
    let (first, second) = (open(), open());
    assert!(first.try_lock().is_ok());
    assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
    drop(first);
    assert!(second.try_lock().is_ok());
}
