//! Where today's decision and a recorded one part.

use std::fmt;

use serde::Serialize;

use crate::decide::Refusal;
use crate::decide::batch::Batch;
use crate::run::event::Event;
use crate::run::input::Input;
use crate::run::record::Record;

/// The first event that would be another one today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// In which record.
    pub record: u64,
    /// In which of its steps, from 1.
    pub step: usize,
    /// Which event of the step, from 1.
    pub event: usize,
    /// What was recorded there; none where the step was over.
    pub recorded: Option<Event>,
    /// What is decided there today.
    pub decided: Decided,
}

/// What is decided today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// This.
    Event(Box<Event>),
    /// Nothing more.
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

/// As it stands in a journal.
fn written(what: &impl Serialize) -> String {
    serde_json::to_string(what).unwrap_or_default()
}

/// Compares what was recorded with what its causes come to.
pub(super) fn first(record: &Record, decided: &Batch) -> Option<Difference> {
    // A cause that comes to nothing has no step, so each step is looked up by its cause. As many
    // steps as causes are the steps of these causes.
    let whole = record.steps.len() == decided.steps.len();
    let mut steps = decided.steps.iter().peekable();
    let recorded = record.steps.iter().zip(&decided.verdicts);
    for (index, (step, verdict)) in recorded.enumerate() {
        let same = steps.next_if(|decided| whole || is_same(&decided.cause, &step.cause));
        let events = same.map(|decided| decided.events.as_slice()).unwrap_or_default();
        let Some(place) = parting(&step.events, events) else { continue };
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

/// The place of the first event that is not the same in both.
fn parting(recorded: &[Event], decided: &[Event]) -> Option<usize> {
    let pairs = recorded.iter().zip(decided);
    let common = pairs.take_while(|(recorded, decided)| recorded == decided).count();
    (common < recorded.len().max(decided.len())).then_some(common)
}

/// Whether two causes are one: what was read in a text is no part of what is recorded.
fn is_same(decided: &Input, recorded: &Input) -> bool {
    written(decided) == written(recorded)
}
