//! Decides several inputs together and returns what one journal record holds.
//!
//! One record costs one disk sync, so everything observed since the last record is decided as one
//! batch. Writing the record and releasing its effects is the job of `engine::driver`.

use crate::time::Timestamp;
use crate::workflow::Definition;

use super::advance::advance;
use super::{Refusal, decide};
use crate::run::apply::apply;
use crate::run::event::Event;
use crate::run::input::Input;
use crate::run::record::RecordStep;
use crate::run::state::Run;

/// The result of a batch of inputs.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    /// One step per input that changed something, in the order of the inputs.
    pub steps: Vec<RecordStep>,
    /// The answer to every input, in order.
    pub verdicts: Vec<Result<(), Refusal>>,
    /// Whether more events follow than one record may hold: the next [`Input::Due`] continues.
    pub more: bool,
}

/// Events in one record, beyond which the next record continues. Only a document whose steps do
/// nothing comes near it; the limit lets a user stop such a run between two records.
const MOST_EVENTS: usize = 10_000;

/// Decides and applies each input on the run, and then everything that follows without an input.
///
/// The latter is decided once, after all inputs, and belongs to the last step: a recovery that
/// reports three interrupted turns and asks to resume is one decision.
pub fn batch(run: &mut Run, definition: &Definition, at: Timestamp, inputs: Vec<Input>) -> Batch {
    batch_of(MOST_EVENTS, run, definition, at, inputs)
}

/// Decides a batch with another limit on events; the last group of events is never split.
pub(super) fn batch_of(
    most: usize,
    run: &mut Run,
    definition: &Definition,
    at: Timestamp,
    inputs: Vec<Input>,
) -> Batch {
    let mut steps = Vec::new();
    let mut verdicts = Vec::new();
    let is_due = inputs.contains(&Input::Due);
    for input in inputs {
        // Each input is decided on the run that the inputs before it have changed.
        let decided = decide(run, definition, at, &input);
        verdicts.push(decided.as_ref().map(|_| ()).map_err(Clone::clone));
        // A refused input leaves no trace: it must not keep the others from being recorded.
        let events = decided.unwrap_or_default();
        if !events.is_empty() {
            steps.push(recorded(run, input, events));
        }
    }
    // `Due` also continues a batch that was too large: it must advance even if no wait is over.
    if steps.is_empty() && is_due {
        steps.push(RecordStep { cause: Input::Due, events: Vec::new() });
    }
    let may_advance = steps.iter().any(|step| !changes_only_the_basis(&step.cause));
    let mut more = false;
    if let Some(last) = steps.last_mut().filter(|_| may_advance) {
        while !more {
            let events = advance(run, definition, at);
            if events.is_empty() {
                break;
            }
            last.events.extend(folded(run, events));
            // Checked after a whole group: events of one decision must not be in two records.
            more = last.events.len() > most;
        }
    }
    steps.retain(|step| !step.events.is_empty());
    Batch { steps, verdicts, more }
}

/// Returns whether an input changes only what a run is based on. The process that adopts states or
/// rewinds a run does not drive it, so no turn may start.
fn changes_only_the_basis(cause: &Input) -> bool {
    matches!(cause, Input::Adopt { .. } | Input::Rewind { .. })
}

/// Folds the events into the run, and returns the step that the journal keeps.
fn recorded(run: &mut Run, mut cause: Input, events: Vec<Event>) -> RecordStep {
    cause.drop_readings();
    RecordStep { cause, events: folded(run, events) }
}

/// Folds events into the run, and then drops the parsed forms of texts, which only the run needs:
/// the journal has the texts.
fn folded(run: &mut Run, mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        apply(run, event);
        if let Event::Stepped { event, .. } = event {
            event.drop_readings();
        }
    }
    events
}
