//! The laws of the one fold: a viewer who joins a run sees the same as a viewer who watched from
//! its start, and a reader of the past sees what was shown live.

use std::fs;
use std::path::Path;

use crate::agent::{AgentStatus, Asking};
use crate::run::{Event, Record, Run, apply};
use crate::view::run_view::RowStatus;
use crate::view::{Audience, BackendLabels, Ledger, LogLine, RunView, answering, place, words};

fn events(record: &Record) -> impl Iterator<Item = &Event> {
    record.steps.iter().flat_map(|step| &step.events)
}

/// Returns the lines of a record as they are printed live.
fn live_lines(view: &mut RunView, record: &Record) -> Vec<LogLine> {
    let line =
        |event| words(&view.note(record.at, event)?, view.naming(), |at| at.to_string())?.live();
    events(record).filter_map(line).collect()
}

/// Returns the lines of `show`, without those that only readers of a past run get.
fn lines_of_show(view: &mut RunView, record: &Record, naming: BackendLabels) -> Vec<LogLine> {
    let line = |event| words(&view.note(record.at, event)?, naming, |at| at.to_string());
    let lines = events(record).filter_map(line);
    lines.filter(|line| line.audience != Audience::HistoryOnly).filter_map(LogLine::live).collect()
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

/// Checks both laws after every record.
#[track_caller]
pub(super) fn check(name: &str, records: &[Record]) {
    let naming = final_naming(records);
    let (mut run, mut ledger) = (Run::default(), Ledger::default());
    let (mut watched, mut shown) = (RunView::default(), RunView::default());
    for record in records {
        let mut joined = RunView::of(&run, &ledger);
        let labels = watched.naming();
        let live = live_lines(&mut watched, record);
        assert_eq!(live_lines(&mut joined, record), live, "{name}, record {}", record.seq);
        let past = lines_of_show(&mut shown, record, naming);
        // A live viewer of a run without a list of backends learns later that there are several.
        if labels == naming {
            assert_eq!(past, live, "{name}, record {}", record.seq);
        }
        for event in events(record) {
            apply(&mut run, event);
            ledger.note(record.at, event);
        }
        assert_eq!(RunView::of(&run, &ledger), watched, "{name}, record {}", record.seq);
        check_rows(&run, &watched, &format!("{name}, record {}", record.seq));
    }
}

/// Checks that the rows agree with the run where a decision reads the same facts.
fn check_rows(run: &Run, view: &RunView, context: &str) {
    for (id, row) in view.agents() {
        let agent = &run.agents[id];
        let shown = (row.place_name(), row.answering(), row.frames().len());
        let known = (place(run, agent), answering(run, agent), agent.stack.len());
        assert_eq!(shown, known, "{context}, {id}");
        assert!(row.frames().all(|(_, call)| call.is_some()), "{context}, {id}");
        let status = match agent.status {
            AgentStatus::Held(_) => RowStatus::Held,
            AgentStatus::Parked(_) => RowStatus::Parked,
            AgentStatus::Joining(_) => RowStatus::Joining,
            AgentStatus::Asking(Asking { answer: None, .. }) => RowStatus::Asking,
            // An agent with an answer continues with the next resume.
            AgentStatus::Live | AgentStatus::Asking(_) => RowStatus::Live,
            AgentStatus::Cancelling(_) => RowStatus::Cancelling,
            AgentStatus::Failed { .. } => RowStatus::Failed,
        };
        assert_eq!(row.status(), status, "{context}, {id}");
    }
}

fn final_naming(records: &[Record]) -> BackendLabels {
    let mut ledger = Ledger::default();
    for record in records {
        for event in events(record) {
            ledger.note(record.at, event);
        }
    }
    ledger.naming()
}

#[test]
fn watching_from_any_record_shows_the_same() {
    let journals = journals();
    assert!(journals.len() > 80, "{} journals", journals.len());
    for (name, records) in &journals {
        check(name, records);
    }
}
