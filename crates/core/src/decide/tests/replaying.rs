//! Replays of a journal: equal decisions, and reports of a difference.

use std::collections::BTreeMap;

use serde_json::json;

use crate::budget::Micros;
use crate::decide::Refusal;
use crate::decide::replay::{Decided, Difference, Replay, Sources};
use crate::run::stop::{StopMode, StopOrigin};
use crate::run::{Ending, Event, Input, Record, RecordStep};
use crate::value::{BlobRef, Hash, Value};
use crate::workflow::Definition;

use super::play::{Play, prompts, turn, workflow};

/// Definitions by manifest, and texts by hash.
#[derive(Default)]
struct Shelf {
    definitions: BTreeMap<Value, Definition>,
    texts: BTreeMap<Hash, String>,
}

impl Sources for Shelf {
    type Error = String;

    fn text(&self, blob: &BlobRef) -> Result<String, String> {
        self.texts.get(&blob.hash).cloned().ok_or_else(|| format!("no blob {}", blob.hash))
    }

    fn definition(&self, manifest: &Value) -> Result<Definition, String> {
        self.definitions.get(manifest).cloned().ok_or_else(|| format!("no pin {manifest:?}"))
    }
}

fn shelf(definition: Definition) -> Shelf {
    let definitions = BTreeMap::from([(Value::from("v1"), definition)]);
    Shelf { definitions, texts: BTreeMap::new() }
}

/// Three records: a start, a goto and a result.
fn journal() -> Vec<Record> {
    let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
    play.says("main", "<goto>B</goto>");
    play.says("main", "<result>done</result>");
    play.records
}

/// Decides all records again, and returns the first difference.
fn replay(records: &[Record], shelf: &Shelf) -> Result<Option<Box<Difference>>, String> {
    let mut replay = Replay::default();
    let mut decided = records.iter().map(|record| replay.record(record, shelf));
    decided.find(|decided| !matches!(decided, Ok(None))).unwrap_or(Ok(None))
}

fn difference(records: &[Record]) -> Option<Difference> {
    let decided = replay(records, &shelf(prompts(&["A.md", "B.md"])));
    decided.unwrap().map(|difference| *difference)
}

#[test]
fn unchanged_decisions_replay_without_difference() {
    assert_eq!(difference(&journal()), None);
    assert_eq!(difference(&[]), None);
}

#[test]
fn changed_event_is_reported() {
    let mut records = journal();
    let settled = records[1].steps[0].events[0].clone();
    let Event::TurnSettled { charge, .. } = &mut records[1].steps[0].events[0] else {
        panic!("the goto settles its turn: {settled:?}")
    };
    charge.amount = Micros(7);
    let recorded = Some(records[1].steps[0].events[0].clone());
    let decided = Decided::Event(Box::new(settled));
    let expected = Difference { record: 2, step: 1, event: 1, recorded, decided };
    assert_eq!(difference(&records), Some(expected));
}

#[test]
fn additional_or_missing_event_is_reported() {
    let mut records = journal();
    let events = &mut records[2].steps[0].events;
    let (last, ended) = (events.len(), events.pop().unwrap());
    assert_eq!(ended, Event::RunEnded { ending: Ending::Completed });
    let decided = Decided::Event(Box::new(ended));
    let missing = Difference { record: 3, step: 1, event: last, recorded: None, decided };
    assert_eq!(difference(&records), Some(missing.clone()));
    assert!(missing.to_string().contains("\nrecorded  nothing more\ndecided   {\"run_ended\":"));

    let mut records = journal();
    let (more, decided) = (Event::RunEnded { ending: Ending::Failed }, Decided::Nothing);
    records[2].steps[0].events.push(more.clone());
    let (record, event, recorded) = (3, last + 1, Some(more));
    let surplus = Difference { record, step: 1, event, recorded, decided };
    assert!(surplus.to_string().ends_with("\ndecided   nothing more"));
    assert_eq!(difference(&records), Some(surplus));
}

#[test]
fn refused_cause_is_reported_with_its_refusal() {
    let mut records = journal();
    let cause = Input::Stop { mode: StopMode::Now, by: StopOrigin::Command, key: "k".to_owned() };
    let event =
        Event::StopRequested { mode: StopMode::Now, by: StopOrigin::Command, key: "k".to_owned() };
    let stop = RecordStep { cause, events: vec![event.clone()] };
    let late = Record { seq: 4, at: records[2].at, steps: vec![stop] };
    records.push(late);
    let decided = Decided::Refused(Refusal::Ended(Ending::Completed));
    let refused = Difference { record: 4, step: 1, event: 1, recorded: Some(event), decided };
    assert_eq!(difference(&records), Some(refused.clone()));
    let text = r#"record 4, step 1, event 1 is decided otherwise
recorded  {"stop_requested":{"mode":"now","by":"command","key":"k"}}
decided   nothing: the run has already ended"#;
    assert_eq!(refused.to_string(), text);

    // The result is the same beside steps without a difference.
    let echo = RecordStep { cause: Input::Due, events: Vec::new() };
    records[3].steps.insert(0, echo);
    assert_eq!(difference(&records), Some(Difference { step: 2, ..refused }));
}

#[test]
fn eventless_cause_gets_no_events_of_others() {
    let check = |place: usize| {
        let (ask, key) = (turn("main.9.9"), "k".to_owned());
        let (value, by) = (Value::from("yes"), "ann".to_owned());
        let event = Event::AskAnswered {
            ask: ask.clone(),
            value: value.clone(),
            by: by.clone(),
            key: key.clone(),
        };
        let cause = Input::Answer { ask, value, by, key };
        let mut records = journal();
        records[1].steps.insert(place, RecordStep { cause, events: vec![event.clone()] });
        let found = difference(&records).unwrap();
        assert_eq!((found.record, found.step, found.event), (2, place + 1, 1));
        assert_eq!(found.recorded, Some(event));
        assert!(matches!(found.decided, Decided::Refused(_)), "{found}");
    };
    check(0);
    check(1);
}

#[test]
fn replay_stops_at_the_first_difference() {
    let mut records = journal();
    records[0].steps[0].events.pop();
    records.truncate(1);
    let first = difference(&records).unwrap();
    records.extend(journal().into_iter().skip(1));
    records[2].steps[0].events.clear();
    assert_eq!(difference(&records), Some(first));
}

#[test]
fn replay_decides_with_the_adopted_definition() {
    let before = prompts(&["A.md", "B.md"]);
    let after = workflow(&[("A.md", "---\nallowed_tags: [goto]\n---\ntext"), ("B.md", "text")]);
    let mut play = Play::new(before.clone()).with(|s| s.reminders = 1).started();
    play.fails("main", crate::failure::TurnFailure::Task { why: "no".to_owned() });
    play.adopt(after.clone());
    play.resume();
    play.says("main", "<reset>B</reset>");
    let mut shelf = shelf(before);
    let missing = replay(&play.records, &shelf).unwrap_err();
    assert_eq!(missing, r#"no pin Inline("v2")"#);
    shelf.definitions.insert(Value::from("v2"), after);
    assert_eq!(replay(&play.records, &shelf).unwrap(), None);
    // With the states as they were, the tag would have been taken.
    shelf.definitions.insert(Value::from("v2"), prompts(&["A.md", "B.md"]));
    let difference = replay(&play.records, &shelf).unwrap().unwrap();
    assert!(matches!(difference.recorded, Some(Event::Reminded { .. })), "{difference}");
    assert!(
        matches!(difference.decided, Decided::Event(event) if matches!(*event, Event::Moved { .. }))
    );
}

#[test]
fn replay_reads_large_texts_from_their_blobs() {
    let text = format!("<result>{}</result>", "x".repeat(20_000));
    let (payload, hash) = ("x".repeat(20_000), Hash::of(text.as_bytes()));
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.says("main", "<result>small</result>");
    let mut records: Vec<Record> = play.records;
    // The same journal, as if the text had been a large one.
    let mut line = serde_json::to_value(&records[1]).unwrap();
    let blob = |text: &str| json!({ "blob": Hash::of(text.as_bytes()), "length": text.len() });
    let step = &mut line["steps"][0];
    step["cause"]["settled"]["outcome"]["finished"]["reply"]["text"] = blob(&text);
    let ended = step["events"].as_array_mut().unwrap().iter_mut();
    for event in ended.filter(|event| event.get("agent_ended").is_some()) {
        event["agent_ended"]["result"] = blob(&payload);
    }
    records[1] = serde_json::from_value(line).unwrap();
    let mut shelf = shelf(prompts(&["A.md"]));
    assert_eq!(replay(&records, &shelf).unwrap_err(), format!("no blob {hash}"));
    shelf.texts.insert(hash, text);
    assert_eq!(replay(&records, &shelf).unwrap(), None);
}
