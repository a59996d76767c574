//! The journal format: every event and every input that was ever written must stay readable.
//!
//! `tests/journal-format-1.jsonl` is a permanent fixture. A new variant or field adds lines;
//! existing lines are never changed.

mod samples;
mod steps;

use serde::{Deserialize, Serialize};

use crate::run::{Event, Header, Input, Record, RecordStep, Run, apply};
use crate::time::Timestamp;

use super::play::{Play, prompts};

const FIXTURE: &str = include_str!("../../../tests/journal-format-1.jsonl");

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sample {
    Header(Header),
    Cause(Input),
    Event(Event),
}

fn samples() -> Vec<Sample> {
    let header = Header { format: 1, run: "flow-1".into(), nonce: "c0ffee".into() };
    let causes = samples::inputs().into_iter().map(Sample::Cause);
    let events = samples::events().into_iter().map(Sample::Event);
    let (later_causes, later_events) = samples::added();
    let later = later_causes.into_iter().map(Sample::Cause);
    let later = later.chain(later_events.into_iter().map(Sample::Event));
    let later = later.chain(samples::denied().map(Sample::Cause));
    let (ralph_cause, ralph_events) = samples::ralph();
    let later = later.chain([Sample::Cause(ralph_cause)]);
    let later = later.chain(ralph_events.into_iter().map(Sample::Event));
    let later = later.chain(samples::mixed().into_iter().map(Sample::Event));
    let (opened_causes, opened_events) = samples::opened();
    let later = later.chain(opened_causes.into_iter().map(Sample::Cause));
    let later = later.chain(opened_events.into_iter().map(Sample::Event));
    let later = later.chain([Sample::Event(samples::versions())]);
    let (start, started) = samples::backends();
    let later = later.chain([Sample::Cause(start), Sample::Event(started)]);
    let later = later.chain(samples::named().into_iter().map(Sample::Event));
    let (steps_causes, steps_events) = steps::steps();
    let later = later.chain(steps_causes.into_iter().map(Sample::Cause));
    let later = later.chain(steps_events.into_iter().map(Sample::Event));
    let (rewind, rewound) = samples::rewound();
    let later = later.chain([Sample::Cause(rewind), Sample::Event(rewound)]);
    let later = later.chain([Sample::Cause(samples::again())]);
    let (rewind, rewound) = samples::governed();
    let later = later.chain([Sample::Cause(rewind), Sample::Event(rewound)]);
    let (capped_causes, capped_events) = samples::capped();
    let later = later.chain(capped_causes.into_iter().map(Sample::Cause));
    let later = later.chain(capped_events.into_iter().map(Sample::Event));
    let later = later.chain([Sample::Event(samples::priced())]);
    let (rewind, rewound) = samples::paid_by_visit();
    let later = later.chain([Sample::Cause(rewind), Sample::Event(rewound)]);
    let (adopt, edited) = steps::edited();
    let later = later.chain([Sample::Cause(adopt)]);
    let later = later.chain(edited.into_iter().map(Sample::Event));
    let (now, waits) = samples::waits();
    let later = later.chain([Sample::Cause(now)]);
    let later = later.chain(waits.into_iter().map(Sample::Event));
    let (cancel, joins) = samples::joins();
    let later = later.chain([Sample::Cause(cancel)]);
    let later = later.chain(joins.into_iter().map(Sample::Event));
    let later = later.chain(samples::questions().into_iter().map(Sample::Event));
    let all = [Sample::Header(header)].into_iter().chain(causes).chain(events).chain(later);
    all.map(Sample::journalled).collect()
}

impl Sample {
    /// Returns the sample without the parts that a replay reads again.
    fn journalled(mut self) -> Self {
        match &mut self {
            Self::Cause(input) => input.drop_readings(),
            Self::Event(Event::Stepped { event, .. }) => event.drop_readings(),
            Self::Header(_) | Self::Event(_) => {}
        }
        self
    }
}

#[test]
fn every_input_survives_being_sent() {
    let (steps_causes, _) = steps::steps();
    let play = Play::new(prompts(&["A.md"])).started();
    let read = play.finished("main", "text <goto>A</goto>", |_| {});
    for input in samples::inputs().into_iter().chain(steps_causes).chain([read]) {
        let sent = serde_json::to_string(&input).unwrap();
        let received: Input = serde_json::from_str(&sent).unwrap();
        // Compared as text, because parsed values count as equal in any form.
        assert_eq!(format!("{received:?}"), format!("{input:?}"));
    }
}

#[test]
fn events_and_inputs_keep_their_written_form() {
    let written: Vec<String> =
        samples().iter().map(|sample| serde_json::to_string(sample).unwrap()).collect();
    let fixture: Vec<&str> = FIXTURE.lines().collect();
    for (line, fixed) in written.iter().zip(&fixture) {
        assert_eq!(line, fixed);
    }
    assert_eq!(written.len(), fixture.len(), "{}", written.join("\n"));
}

// proves: P7
#[test]
fn every_fixture_line_reads_back() {
    let read: Vec<Sample> =
        FIXTURE.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, samples());
}

#[test]
fn the_fixture_holds_every_variant() {
    let (mut inputs, mut events) = (Vec::new(), Vec::new());
    for sample in samples() {
        let (kinds, kind) = match &sample {
            Sample::Header(_) => continue,
            Sample::Cause(input) => (&mut inputs, samples::input_kind(input)),
            Sample::Event(event) => (&mut events, samples::event_kind(event)),
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    assert_eq!((inputs, events), (samples::INPUT_KINDS.into(), samples::EVENT_KINDS.into()));
}

#[test]
fn record_is_one_line_that_reads_back() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    play.says("main", r#"<fork next="A" item="ä&lt;">W</fork><fork next="A">W</fork>"#);
    play.says("main_w1", "no tag");
    play.stumbles("main_w2");
    play.crashes(false);
    play.says("main", "<result>a\nb</result>");
    let cause = play.resume_input();
    let steps = vec![RecordStep { cause, events: play.story.clone() }];
    let record = Record { seq: 1, at: Timestamp(7), steps };
    let line = serde_json::to_string(&record).unwrap();
    assert!(!line.contains('\n'));
    let read: Record = serde_json::from_str(&line).unwrap();
    assert_eq!(read, record);
    let mut run = Run::default();
    for event in &read.steps[0].events {
        apply(&mut run, event);
    }
    assert_eq!(run, play.run);
    // The run itself is serialized, too.
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
}

#[test]
fn run_with_queued_prompts_serializes() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    assert!(!play.run.scheduler.queues.is_empty());
    let text = serde_json::to_string(&play.run).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), play.run);
}
