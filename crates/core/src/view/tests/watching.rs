//! A viewer who joins a run sees the same as one who watched from its start.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use crate::ids::AgentId;
use crate::run::{Event, Phase, Record, Run, apply};
use crate::view::live::{Doing, Row};
use crate::view::{Ledger, Line, Live, Narrator};

fn events(record: &Record) -> impl Iterator<Item = &Event> {
    record.steps.iter().flat_map(|step| &step.events)
}

fn lines(narrator: &mut Narrator, record: &Record) -> Vec<Line> {
    events(record).filter_map(|event| narrator.line(event)).collect()
}

/// Returns everything that a screen shows.
fn shown(live: &Live) -> impl PartialEq + Debug {
    let row = |(agent, row, doing): (&AgentId, &Row, Doing)| {
        let Row { born, cwd, place, since, spent, .. } = row.clone();
        (agent.clone(), (born, cwd, place, since, spent), doing)
    };
    let busy: Vec<_> = live.busy().into_iter().map(row).collect();
    (live.spent, live.cap, live.since, live.course, live.tally(), busy)
}

/// Returns every journal fixture, by name.
#[expect(clippy::disallowed_methods, reason = "they lie where every release finds them")]
fn journals() -> Vec<(String, Vec<Record>)> {
    let shelf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/journals/format-1");
    let entries = fs::read_dir(shelf).expect("golden journals").map(Result::unwrap);
    let journal = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("journal.jsonl")).ok()?;
        let records = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
        Some((entry.file_name().to_string_lossy().into_owned(), records.collect()))
    };
    entries.filter_map(journal).collect()
}

/// Checks that a viewer who joins at any of these records sees the same from there on.
#[track_caller]
pub(super) fn check(name: &str, records: &[Record]) {
    let (mut run, mut ledger) = (Run::default(), Ledger::default());
    let (mut narrator, mut live) = (Narrator::live(), Live::default());
    for record in records {
        let mut late = Narrator::after(&run, &ledger);
        let told = lines(&mut narrator, record);
        assert_eq!(lines(&mut late, record), told, "{name}, record {}", record.seq);
        for event in events(record) {
            apply(&mut run, event);
            ledger.note(record.at, event);
            live.note(record.at, event);
        }
        if !matches!(run.phase, Phase::Ended(_)) {
            let late = Live::after(&run, &ledger);
            assert_eq!(shown(&late), shown(&live), "{name}, record {}", record.seq);
        }
    }
}

#[test]
fn watching_from_any_record_shows_the_same() {
    let journals = journals();
    assert!(journals.len() > 80, "{} journals", journals.len());
    for (name, records) in &journals {
        check(name, records);
    }
}
