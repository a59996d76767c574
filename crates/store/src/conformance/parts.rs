//! The rules of blobs, inbox, lock, snapshot and directories that hold on every disk.
//!
//! They are in the same suite as the disk itself, because each of them relies on details in which
//! file systems differ: renames, locks, links and the order of names.

use std::sync::Arc;

use super::{Check, Fixture};
use crate::blobs::{self, Blobs};
use crate::host::Life;
use crate::inbox::{self, Inbox, InboxContent, InboxMessage, InvalidFile, InvalidReason, Posted};
use crate::journal::Journal;
use crate::lock::{self, Claim, Lock, Takeover};
use crate::root::Root;
use crate::snapshot::Snapshot;
use crate::statefile;

pub(super) const CHECKS: &[Check] = &[
    a_blob_is_stored_once_under_its_hash,
    damaged_blob_is_reported_and_stored_again,
    requests_stay_until_removed,
    invalid_files_in_the_inbox_are_renamed,
    a_lock_has_one_owner,
    a_record_of_another_host_needs_a_takeover,
    a_snapshot_counts_only_for_its_own_history,
    a_vanished_directory_is_created_again,
    owner_sweeps_its_unfinished_files,
];

fn blobs(on: &Fixture) -> Blobs {
    on.disk.create_dir(&on.path("blobs")).expect("it is created");
    Blobs::new(Arc::clone(&on.disk), on.path("blobs"))
}

fn a_blob_is_stored_once_under_its_hash(on: &Fixture) {
    let blobs = blobs(on);
    let content = vec![b'x'; 200_000];
    let hash = blobs.put(&content).expect("it is stored");
    assert_eq!(hash, blake3::hash(&content).to_hex().as_str());
    assert_eq!(blobs.put(&content).expect("it is there"), hash);
    let spool = on.write("spool", &content);
    let stored = blobs.put_file(&spool).expect("it is there");
    assert_eq!(stored, (hash.clone(), 200_000));
    assert_eq!(blobs.get(&hash).expect("it is read"), content);
    let empty = blobs.put(b"").expect("it is stored");
    let mut expected = vec![hash, empty];
    expected.sort();
    assert_eq!(on.names(&on.path("blobs")), expected);
}

fn damaged_blob_is_reported_and_stored_again(on: &Fixture) {
    let hash = blobs(on).put(b"content").expect("it is stored");
    // Another process: the one that stored the blob knows it and would not read it again.
    let blobs = Blobs::new(Arc::clone(&on.disk), on.path("blobs"));
    on.write(&format!("blobs/{hash}"), b"c0ntent");
    let damaged = blobs.get(&hash).expect_err("it is damaged");
    assert!(matches!(damaged, blobs::Error::Damaged { .. }), "{damaged}");
    blobs.put(b"content").expect("it is stored again");
    assert_eq!(blobs.get(&hash).expect("it is good"), b"content");
    let missing = blobs.get(&"0".repeat(64)).expect_err("it is missing");
    assert!(matches!(missing, blobs::Error::Missing(_)), "{missing}");
    for bad in ["../spool", &hash[1..], &"g".repeat(64)] {
        let bad = blobs.get(bad).expect_err("it is not a hash");
        assert!(matches!(bad, blobs::Error::BadHash(_)), "{bad}");
    }
}

fn inbox(on: &Fixture) -> Inbox {
    on.disk.create_dir(&on.path("inbox")).expect("it is created");
    Inbox::new(Arc::clone(&on.disk), on.path("inbox"))
}

fn requests_stay_until_removed(on: &Fixture) {
    let inbox = inbox(on);
    let message =
        |key: &str, bytes: &[u8]| InboxMessage { key: key.to_owned(), bytes: bytes.to_owned() };
    assert_eq!(inbox.post("b", b"{}").expect("it is posted"), Posted::New);
    assert_eq!(inbox.post("a", b"[1]").expect("it is posted"), Posted::New);
    assert_eq!(inbox.post("a", b"[2]").expect("it waits"), Posted::Already);
    for _ in 0..2 {
        let expected = InboxContent {
            messages: vec![message("a", b"[1]"), message("b", b"{}")],
            invalid: Vec::new(),
        };
        assert_eq!(inbox.take_all().expect("it is read"), expected);
    }
    inbox.remove("a").expect("it is removed");
    inbox.remove("a").expect("it is gone already");
    assert_eq!(on.names(&on.path("inbox")), ["b.json"]);
    let longest = "a-_".repeat(66) + "B0";
    assert_eq!(inbox.post(&longest, b"{}").expect("it is a key"), Posted::New);
    let longer = longest + "1";
    for bad in ["", "../a", "a b", "ä", "a.json", &longer] {
        let refused = inbox.post(bad, b"{}").expect_err("it is not a key");
        assert!(matches!(refused, inbox::Error::BadKey(_)), "{refused}");
    }
}

fn invalid_files_in_the_inbox_are_renamed(on: &Fixture) {
    let inbox = inbox(on);
    inbox.post("good", b"{}").expect("it is posted");
    for (name, why) in [
        ("torn.json", InvalidReason::Json),
        ("a b.json", InvalidReason::Name),
        ("notes.txt", InvalidReason::Name),
    ] {
        on.write(&format!("inbox/{name}"), b"{\"half\":");
        // A process that is posting now must not lose its file to the reader.
        on.write("inbox/.temporary-0", b"under way");
        let taken = inbox.take_all().expect("it is read");
        assert_eq!(taken.messages.len(), 1);
        let moved = Some(on.path(&format!("inbox/{name}.bad-1")));
        let name = name.to_owned();
        assert_eq!(taken.invalid, [InvalidFile { name, why, moved }]);
    }
    assert_eq!(inbox.take_all().expect("it is read").invalid, []);
    let vanished = Inbox::new(Arc::clone(&on.disk), on.path("nowhere"));
    assert_eq!(vanished.take_all().expect("nothing is there"), InboxContent::default());
}

const CLAIM: Claim<'_> = Claim { since: 7, version: "1.0", takeover: Takeover::Never };

fn a_lock_has_one_owner(on: &Fixture) {
    let path = on.path("lock");
    let take = || Lock::take(on.disk.as_ref(), on.host.as_ref(), &path, CLAIM);
    let owner = || Lock::owner(on.disk.as_ref(), on.host.as_ref(), &path).expect("it is read");
    assert_eq!(owner(), None);
    let lock = take().expect("it is free");
    assert!(lock.is_in_place().expect("it is looked at"));
    let (holder, life) = owner().expect("it has an owner");
    assert_eq!((&holder.process, life), (&on.host.me(), Life::Alive));
    assert_eq!((holder.since, holder.version.as_str()), (7, "1.0"));
    match take().expect_err("it is held") {
        lock::Error::Held { owner, .. } => assert_eq!(owner.as_deref(), Some(&holder)),
        other => assert_eq!(other.to_string(), "held"),
    }
    drop(lock);
    assert_eq!(owner(), None);
    drop(take().expect("it is free again"));
    on.write("lock", b"{\"host\":\0\0");
    drop(take().expect("a torn record has no owner"));
}

fn a_record_of_another_host_needs_a_takeover(on: &Fixture) {
    let path = on.path("lock");
    let take = |takeover| {
        let claim = Claim { takeover, ..CLAIM };
        Lock::take(on.disk.as_ref(), on.host.as_ref(), &path, claim)
    };
    let elsewhere = br#"{"host":"far","boot":"b","pid":1,"started":2,"since":3,"version":"0.9"}"#;
    on.write("lock", elsewhere);
    let refused = take(Takeover::Never).expect_err("its owner may live");
    assert!(matches!(refused, lock::Error::OtherHost { .. }), "{refused}");
    assert_eq!(on.content(&path), elsewhere);
    drop(take(Takeover::OtherHost).expect("a person says so"));
    let mut dead = on.host.me();
    dead.started += 1_000_000;
    dead.pid += 1_000_000;
    let dead = serde_json::json!({
        "host": dead.host, "boot": dead.boot, "pid": dead.pid, "started": dead.started,
        "since": 1, "version": "0.9",
    });
    on.write("lock", dead.to_string().as_bytes());
    drop(take(Takeover::Never).expect("its owner is gone"));
}

fn a_snapshot_counts_only_for_its_own_history(on: &Fixture) {
    let (path, journal) = (on.path("snapshot.json"), on.path("journal.jsonl"));
    let disk = || Arc::clone(&on.disk);
    let mut writer = Journal::create(disk(), &journal, b"{\"h\":1}").expect("it is created");
    for body in [b"{\"n\":1}", b"{\"n\":2}", b"{\"n\":3}"] {
        writer.append(body).expect("it is appended");
    }
    let lines = || Journal::read(disk().as_ref(), &journal).expect("it is read").lines;
    let read = || Snapshot::read(disk().as_ref(), &path, &lines());
    assert_eq!(read(), None);
    let snapshot = Snapshot {
        seq: 2,
        sum: lines().line(2).expect("it is there").sum,
        state: b"state\n\0".to_vec(),
    };
    snapshot.write(disk().as_ref(), &path).expect("it is written");
    assert_eq!(read(), Some(snapshot.clone()));
    assert_eq!(lines().after(2).map(|line| line.seq).collect::<Vec<_>>(), [3]);
    let content = on.content(&path);
    on.write("snapshot.json", &content[..content.len() - 1]);
    assert_eq!(read(), None);
    snapshot.write(disk().as_ref(), &path).expect("it is written");
    Journal::truncate_to(on.disk.as_ref(), &journal, 1, b"{\"n\":4}").expect("it is cut");
    // Record 2 exists again after the rewind, but with another history, so its number alone proves
    // nothing.
    let mut cut = Journal::open(disk(), &journal).expect("it opens").journal;
    cut.append(b"{\"n\":5}").expect("it is appended");
    assert_eq!(read(), None);
}

fn a_vanished_directory_is_created_again(on: &Fixture) {
    let disk = on.disk.as_ref();
    let root = Root::in_directory(&on.directory);
    assert_eq!(root.runs(disk).expect("there is none"), Vec::<String>::new());
    let paths = root.run("b").expect("it is an id");
    for _ in 0..2 {
        root.ensure(disk).expect("it is created");
        paths.ensure(disk).expect("it is created");
        root.run("a").expect("it is an id").ensure(disk).expect("it is created");
        on.write(".raymond/runs/file", b"");
        assert_eq!(on.content(&root.path().join(".gitignore")), b"*\n");
        assert_eq!(root.runs(disk).expect("they are listed"), ["a", "b"]);
        statefile::replace(disk, &paths.state, b"{}").expect("it is written");
        statefile::replace(disk, &paths.state, b"{\"n\":2}").expect("it is replaced");
        assert_eq!(on.content(&paths.state), b"{\"n\":2}");
        on.write(".raymond/runs/b/inbox/x", b"");
        assert!(paths.exists(disk).expect("it is looked at"));
        paths.remove(disk).expect("it is removed");
        assert!(!paths.exists(disk).expect("it is looked at"));
        assert!(disk.metadata(&paths.state).is_err());
    }
}

fn owner_sweeps_its_unfinished_files(on: &Fixture) {
    let disk = on.disk.as_ref();
    let root = Root::in_directory(&on.directory);
    let paths = root.run("r").expect("it is an id");
    paths.sweep(disk).expect("there is nothing");
    root.ensure(disk).expect("it is created");
    paths.ensure(disk).expect("it is created");
    for name in [
        ".temporary-0-.gitignore",
        "runs/r/.temporary-0-snapshot.json",
        "runs/r/blobs/.temporary-0-copy",
        "runs/r/inbox/.temporary-1-key.json",
        "state/.temporary-12-r.json",
        "state/.temporary-0-other-r.json",
        "state/.temporary-0-r.json.json",
    ] {
        on.write(&format!(".raymond/{name}"), b"half");
    }
    paths.sweep(disk).expect("it is swept");
    let state = root.path().join("state");
    let directories = [root.path(), &paths.directory, &paths.blobs, &paths.inbox, &state];
    let names = directories.into_iter().flat_map(|directory| on.names(directory));
    let left: Vec<String> = names.filter(|name| name.starts_with(".temporary-")).collect();
    let others = [".temporary-0-other-r.json", ".temporary-0-r.json.json"];
    assert_eq!(left, others, "another run's may be written just now");
}
