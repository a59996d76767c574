//! One turn of the wheel: several inputs, one record.

use crate::time::Timestamp;
use crate::workflow::Definition;

use super::advance::advance;
use super::apply::apply;
use super::decide::{Refusal, decide};
use super::event::Event;
use super::input::Input;
use super::record::Step;
use super::state::Run;

/// What became of a batch of inputs.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    /// What followed, input by input; an input that changed nothing has no step.
    pub steps: Vec<Step>,
    /// The verdict on every input, in order.
    pub verdicts: Vec<Result<(), Refusal>>,
}

/// Decides and applies each input on the head of the run, and then whatever follows by itself.
///
/// What follows by itself is decided once, after all inputs, and stands in the last step: a
/// recovery that reports three interrupted turns and asks to resume is one decision.
pub fn batch(run: &mut Run, definition: &Definition, at: Timestamp, inputs: Vec<Input>) -> Batch {
    let mut steps = Vec::new();
    let mut verdicts = Vec::new();
    for input in inputs {
        let decided = decide(run, definition, at, &input);
        verdicts.push(decided.as_ref().map(|_| ()).map_err(Clone::clone));
        let events = decided.unwrap_or_default();
        if !events.is_empty() {
            fold(run, &events);
            steps.push(Step { cause: input, events });
        }
    }
    if let Some(last) = steps.last_mut() {
        loop {
            let events = advance(run, definition, at);
            if events.is_empty() {
                break;
            }
            fold(run, &events);
            last.events.extend(events);
        }
    }
    Batch { steps, verdicts }
}

fn fold(run: &mut Run, events: &[Event]) {
    for event in events {
        apply(run, event);
    }
}
