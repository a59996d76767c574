//! The first difference between a recorded decision and today's decision.

use std::fmt;

use serde::Serialize;

use crate::decide::Refusal;
use crate::decide::batch::Batch;
use crate::run::event::Event;
use crate::run::input::Input;
use crate::run::record::Record;

/// The first event that would be different today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub record: u64,
    /// The step in the record, from 1.
    pub step: usize,
    /// The event in the step, from 1.
    pub event: usize,
    /// The recorded event, or nothing if the step had no more events.
    pub recorded: Option<Event>,
    pub decided: Decided,
}

/// The decision of today for one place in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    Event(Box<Event>),
    Nothing,
    /// The cause is refused.
    Refused(Refusal),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, step, event, recorded, decided } = self;
        let nothing = || "nothing more".to_owned();
        let recorded = recorded.as_ref().map_or_else(nothing, written);
        let decided = match decided {
            Decided::Event(event) => written(event),
            Decided::Nothing => nothing(),
            Decided::Refused(refusal) => format!("nothing: {refusal}"),
        };
        writeln!(f, "record {record}, step {step}, event {event} is decided otherwise")?;
        write!(f, "recorded  {recorded}\ndecided   {decided}")
    }
}

/// Returns the text that a journal would contain.
fn written(what: &impl Serialize) -> String {
    serde_json::to_string(what).unwrap_or_default()
}

/// Returns the first difference between a record and the batch that its causes give today.
pub(super) fn first(record: &Record, decided: &Batch) -> Option<Difference> {
    // A cause without events has no step, so each step is looked up by its cause. If both sides
    // have equally many steps, they correspond one to one, and causes need no comparison.
    let whole = record.steps.len() == decided.steps.len();
    let mut steps = decided.steps.iter().peekable();
    let recorded = record.steps.iter().zip(&decided.verdicts);
    for (index, (step, verdict)) in recorded.enumerate() {
        let same = steps.next_if(|decided| whole || is_same(&decided.cause, &step.cause));
        let events = same.map(|decided| decided.events.as_slice()).unwrap_or_default();
        let Some(place) = first_different(&step.events, events) else { continue };
        let decided = match (events.get(place), verdict) {
            (Some(event), _) => Decided::Event(Box::new(event.clone())),
            (None, Ok(())) => Decided::Nothing,
            (None, Err(refusal)) => Decided::Refused(refusal.clone()),
        };
        let recorded = step.events.get(place).cloned();
        let (step, event) = (index + 1, place + 1);
        return Some(Difference { record: record.seq, step, event, recorded, decided });
    }
    None
}

/// Returns the index of the first event that differs.
fn first_different(recorded: &[Event], decided: &[Event]) -> Option<usize> {
    let pairs = recorded.iter().zip(decided);
    let common = pairs.take_while(|(recorded, decided)| recorded == decided).count();
    (common < recorded.len().max(decided.len())).then_some(common)
}

/// Compares two causes as journal text, because what was read from a text is not recorded.
fn is_same(decided: &Input, recorded: &Input) -> bool {
    written(decided) == written(recorded)
}
