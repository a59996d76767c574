//! A watcher of a live run and a reader of its files get the same items.

use raymond_core::run::Record;
use raymond_store::journal::Sum;

use super::*;
use crate::inspect::inspect;
use crate::runner;
use crate::test_runs::{AttachedClient, Client, TestRun, answered_by};

/// A watcher that keeps the records and the notes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kept {
    records: Vec<(FeedCursor, Record)>,
    notes: Vec<NoteKind>,
}

impl RunWatcher for Kept {
    fn take(&mut self, item: FeedItem<'_>) {
        match item {
            FeedItem::Record { cursor, record, run } => {
                assert!(!run.agents.is_empty() || !run.ended.is_empty(), "the record is applied");
                self.records.push((cursor, record.clone()));
            }
            FeedItem::Note(note) => self.notes.push(note),
            FeedItem::Progress { .. } => {}
        }
    }
}

#[tokio::test]
async fn follower_gets_what_a_live_watcher_got() {
    let setup = TestRun::in_files();
    let (owned, start) = setup.created(&[("START.md", "go")], TestRun::settings());
    let seen = inspect(&setup.project, &TestRun::run()).unwrap();
    let backends = answered_by(&Client::new(AttachedClient::Running, "<result>x</result>"));
    let mut live = Kept::default();
    runner::drive(owned, backends, vec![start], &mut live).await.unwrap();
    let mut followed = Kept::default();
    let mut follower = RunFollower::new(&setup.project, seen).with_progress();
    while follower.poll(&mut |item| followed.take(item)).unwrap() == Followed::More {}
    assert_eq!(followed, live);
    assert!(live.records.len() > 1, "{live:?}");
    // A process that reads the run now stops at the same place.
    let last = live.records.last().map(|(cursor, _)| *cursor);
    let read = inspect(&setup.project, &TestRun::run()).unwrap();
    assert_eq!(read.journal.lines.last().map(|line| FeedCursor::of(&line)), last);
    assert_eq!(follower.into_seen().head.run, read.head.run);
}

#[test]
fn cursor_is_short() {
    let sum: Sum = "9f3ac1d2000000000000000000000000".parse().unwrap();
    assert_eq!(FeedCursor { seq: 171, sum }.to_string(), "171-9f3ac1d2");
}

#[test]
fn notes_have_words() {
    let (name, why) = ("x.json".to_owned(), "unknown request".to_owned());
    let ignored = NoteKind::RequestIgnored { name, why };
    assert_eq!(ignored.to_string(), "ignored x.json in the inbox: unknown request");
    let refused = NoteKind::EditRefused { why: "A.md is gone".to_owned() };
    assert_eq!(refused.to_string(), "continuing with the earlier states: A.md is gone");
}
