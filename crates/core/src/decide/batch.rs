//! One turn of the wheel: several inputs, one record.

use crate::time::Timestamp;
use crate::workflow::Definition;

use super::advance::advance;
use super::{Refusal, decide};
use crate::run::apply::apply;
use crate::run::event::Event;
use crate::run::input::Input;
use crate::run::record::Step;
use crate::run::state::Run;

/// What became of a batch of inputs.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    /// What followed, input by input; an input that changed nothing has no step.
    pub steps: Vec<Step>,
    /// The verdict on every input, in order.
    pub verdicts: Vec<Result<(), Refusal>>,
    /// Whether more follows by itself than one record is to hold: [`Input::Due`] goes on with it.
    pub more: bool,
}

/// How many events may follow by themselves in one record. Only steps that do nothing come near it:
/// between two records a run can be stopped.
const MOST_EVENTS: usize = 10_000;

/// Decides and applies each input on the head of the run, and then whatever follows by itself.
///
/// What follows by itself is decided once, after all inputs, and stands in the last step: a
/// recovery that reports three interrupted turns and asks to resume is one decision.
pub fn batch(run: &mut Run, definition: &Definition, at: Timestamp, inputs: Vec<Input>) -> Batch {
    batch_of(MOST_EVENTS, run, definition, at, inputs)
}

/// The same, with at most so many events, or as many more as follow from each other.
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
        let decided = decide(run, definition, at, &input);
        verdicts.push(decided.as_ref().map(|_| ()).map_err(Clone::clone));
        let events = decided.unwrap_or_default();
        if !events.is_empty() {
            fold(run, &events);
            steps.push(Step { cause: input, events });
        }
    }
    if steps.is_empty() && is_due {
        steps.push(Step { cause: Input::Due, events: Vec::new() });
    }
    let happened = steps.iter().any(|step| !changes_only_the_ground(&step.cause));
    let mut more = false;
    if let Some(last) = steps.last_mut().filter(|_| happened) {
        while !more {
            let events = advance(run, definition, at);
            if events.is_empty() {
                break;
            }
            fold(run, &events);
            last.events.extend(events);
            more = last.events.len() > most;
        }
    }
    steps.retain(|step| !step.events.is_empty());
    Batch { steps, verdicts, more }
}

/// Whoever adopts states or cuts a run back does not drive it yet: nothing may start.
fn changes_only_the_ground(cause: &Input) -> bool {
    matches!(cause, Input::Adopt { .. } | Input::Rewind { .. })
}

fn fold(run: &mut Run, events: &[Event]) {
    for event in events {
        apply(run, event);
    }
}
