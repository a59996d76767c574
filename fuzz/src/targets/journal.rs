//! Journals. From any file, a valid prefix is read and nothing is invented. Any record with a
//! correct checksum can be applied, shown and stored.

use std::path::Path;
use std::sync::Arc;

use raymond_core::run::Record;
use raymond_core::time::Timestamp;
use raymond_core::view::{self, OwnerState, Plan, RunView, words};
use raymond_engine::driver::Head;
use raymond_engine::{fold, statefile};
use raymond_store::Journal;
use raymond_store::disk::{Disk, Memory, OpenMode};
use raymond_store::journal::{Error, ReadJournal, Tail};

use crate::Target;

/// A journal as bytes, and its lines as records under sums of their own.
pub const TARGET: Target = Target {
    name: "journal",
    inputs: 2_000,
    words: &[
        "{\"format\":1,\"run\":\"r\",\"nonce\":\"n\"}",
        "\n",
        "\"seq\":1,",
        "\"at\":0,",
        "\"steps\":[",
        "{\"cause\":",
        "\"events\":[",
        ",\"sum\":\"00000000000000000000000000000000\"}",
        "\"run_started\":{",
        "\"run_resumed\":{",
        "\"run_ended\":",
        "\"turn_queued\":{",
        "\"turn_started\":{",
        "\"turn_settled\":{",
        "\"turn_failed\":{",
        "\"turn_interrupted\":{",
        "\"agent_spawned\":{",
        "\"visit_entered\":{",
        "\"moved\":{",
        "\"agent_ended\":{",
        "\"agent_failed\":{",
        "\"agent_held\":{",
        "\"agent_revived\":{",
        "\"stepped\":{",
        "\"warned\":{",
        "\"run_rewound\":{",
        "\"turn\":\"main.1.1\"",
        "\"agent\":\"main\"",
        "\"main_a1\"",
        "\"attempt\":4294967295",
        "\"amount\":18446744073709551615",
        "\"amount\":-1",
        "\"blob\":",
        "\"visit\":0",
        "\"START.md\"",
        "null",
        "{}",
        "[]",
        "},{",
    ],
    memory: Target::MEMORY,
    check,
};

const PATH: &str = "/run/journal.jsonl";

fn check(bytes: &[u8]) {
    check_bytes(bytes);
    check_records(bytes);
}

/// Reads any journal, opens it and reads it again.
fn check_bytes(bytes: &[u8]) {
    let disk = holding(bytes);
    match Journal::read(disk.as_ref(), Path::new(PATH)) {
        Ok(read) => check_prefix(bytes, &read, &disk),
        Err(_) => {
            let refused = Journal::open(Arc::clone(&disk), Path::new(PATH)).is_err();
            assert!(refused, "what cannot be read can be opened");
            // The user decides about damage, and needs the original bytes for that.
            assert_eq!(content(disk.as_ref()), bytes, "what cannot be opened was changed");
        }
    }
}

fn check_prefix(bytes: &[u8], read: &ReadJournal, disk: &Arc<dyn Disk>) {
    let good = usize::try_from(read.cursor.offset).expect("a length");
    assert!(good <= bytes.len(), "more was read than there is");
    let lines = bytes[..good].split_inclusive(|byte| *byte == b'\n').count();
    assert_eq!(read.lines.len() + 1, lines, "every good line is a record, or the header");
    let opened = Journal::open(Arc::clone(disk), Path::new(PATH));
    match &read.tail {
        Tail::Damaged(_) => {
            assert!(matches!(opened, Err(Error::Damaged { .. })), "damage is gone on with");
            assert_eq!(content(disk.as_ref()), bytes, "a damaged journal was changed");
        }
        Tail::Clean | Tail::Torn(_) => {
            let opened = opened.expect("a journal that is whole, or torn");
            assert_eq!(opened.lines.len(), read.lines.len());
            assert_eq!(content(disk.as_ref()), bytes[..good], "opening keeps the good lines");
        }
    }
}

/// Seals each line as a record: unreadable records are refused, the others are folded.
fn check_records(bytes: &[u8]) {
    // A mutation breaks the checksum of its line, and reading would stop there. With new checksums
    // the records themselves are tested.
    let bodies: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(body).collect();
    let Some((header, records)) = bodies.split_first() else { return };
    let disk: Arc<dyn Disk> = Arc::new(empty());
    let Ok(mut journal) = Journal::create(Arc::clone(&disk), Path::new(PATH), header) else {
        return;
    };
    let sealed: Vec<&Vec<u8>> =
        records.iter().filter(|record| journal.append(record).is_ok()).collect();
    let read = Journal::read(disk.as_ref(), Path::new(PATH)).expect("what was just written");
    assert_eq!((&*read.header, &read.tail), (&**header, &Tail::Clean));
    assert!(read.lines.iter().map(|line| line.body).eq(sealed.iter().map(|body| &***body)));
    if fold::header(&read.header).is_ok() {
        check_fold(sealed.iter().map(|body| body.as_slice()));
    }
}

/// Folds records up to the first unreadable one. Each counts as the next record, independent of its
/// own number.
fn check_fold<'b>(bodies: impl Iterator<Item = &'b [u8]>) {
    let (mut head, mut watched) = (Head::empty(), RunView::default());
    for body in bodies {
        let Ok(mut record) = serde_json::from_slice::<Record>(body) else { continue };
        assert_eq!(fold::record(body, record.seq).ok().as_ref(), Some(&record));
        let written = serde_json::to_string(&record).expect("a record is plain data");
        let again: Record = serde_json::from_str(&written).expect("what is written can be read");
        assert_eq!(again, record, "writing changes the record");
        assert_eq!(serde_json::to_string(&again).ok(), Some(written), "writing is not stable");
        // A real journal has no gaps, but a mutated record can have any number.
        record.seq = head.seq + 1;
        head.fold(&record);
        for event in record.steps.iter().flat_map(|step| &step.events) {
            if let Some(told) = watched.note(record.at, event) {
                words(&told, watched.naming(), time);
            }
        }
    }
    check_views(&head);
    // A snapshot contains the run in this form.
    let kept = serde_json::to_string(&head.run).expect("a run is plain data");
    let again = serde_json::from_str(&kept).expect("a run that was kept can be read");
    assert_eq!(head.run, again, "keeping changes the run");
}

/// A time as the journal has it; the command line shows local times.
fn time(at: Timestamp) -> String {
    at.to_string()
}

/// Every command that only looks has an answer, however little sense the run makes.
fn check_views(head: &Head) {
    for owner in [OwnerState::Alive, OwnerState::Gone] {
        let status = view::status(&head.run, owner);
        assert!(!view::why(&head.run, &head.ledger, status, time).text.is_empty(), "no reason");
        assert!(statefile::render(head, status).is_ok());
    }
    Plan::of(&head.run, &head.ledger, &head.run.settings);
    RunView::of(&head.run, &head.ledger).busy();
}

/// A line without its sum.
fn body(line: &[u8]) -> Vec<u8> {
    const SUM: usize = r#","sum":"00000000000000000000000000000000"}"#.len();
    let start = line.len().saturating_sub(SUM);
    if !line[start..].starts_with(br#","sum":""#) {
        return line.to_vec();
    }
    [&line[..start], b"}"].concat()
}

fn empty() -> Memory {
    let disk = Memory::new(1);
    disk.create_dir(Path::new("/run")).expect("an empty disk");
    disk
}

fn holding(bytes: &[u8]) -> Arc<dyn Disk> {
    let disk = empty();
    let mut file = disk.open(Path::new(PATH), OpenMode::New).expect("an empty disk");
    file.write_at(0, bytes).expect("a disk with room");
    Arc::new(disk)
}

fn content(disk: &dyn Disk) -> Vec<u8> {
    let mut file = disk.open(Path::new(PATH), OpenMode::Read).expect("a journal");
    let size = usize::try_from(file.size().expect("a journal")).expect("a size");
    let mut bytes = vec![0; size];
    let read = file.read_at(0, &mut bytes).expect("a journal");
    assert_eq!(read, size);
    bytes
}
