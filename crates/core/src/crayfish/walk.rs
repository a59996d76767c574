//! The interpreter: it computes what one branch does next.
//!
//! It reads the document and the [`StepsState`] and returns one [`Next`] at a time. It does not
//! choose the branch ([`StepsState::next_ready`] does), and it knows no gates, attempts and
//! collected failures: [`crate::steps`] decides those, and asks again after its events are applied.
//! An `if` leaves no event: its condition is evaluated on the way. Nothing runs here: a step that
//! has to run is only named.

use serde_json::{Map, Value as Json};

use crate::ids::AgentId;
use crate::text::counted;

use super::document::{
    Document, ForEach, OnMaxIters, Order, Step, StepIndex, StepKind, StepList, While,
};
use super::error_code::ErrorCode;
use super::key::StepKey;
use super::name::StepId;
use super::path::Namespace;
use super::state::{Branch, LoopFrame, Position, StepEvent, StepsState};
use super::variable_problem::VariableProblem;

mod items;
mod scope;
#[cfg(test)]
mod tests;

pub use scope::Scope;

/// The document and variables of a run, without its state.
#[derive(Clone, Copy)]
pub struct Interpreter<'a> {
    pub document: &'a Document,
    /// Its variables, replaced by those of the request where both exist.
    pub vars: &'a Map<String, Json>,
}

/// The next thing that happens to a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// An event to apply.
    StepEvent(StepEvent),
    /// Iterations begin, each as a branch, and this branch waits for them.
    Splits {
        of: StepId,
        count: u32,
    },
    /// A step has to run.
    Does {
        step: StepIndex,
        key: StepKey,
    },
    Fails(Stuck),
}

/// The reason why a branch cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    pub code: ErrorCode,
    pub key: StepKey,
    pub message: String,
    /// The variable of the run that is the cause, if there is one.
    pub variable: Option<VariableProblem>,
}

impl Stuck {
    /// Returns a reason that no variable of the run explains.
    pub fn new(code: ErrorCode, key: StepKey, message: impl Into<String>) -> Self {
        Self { code, key, message: message.into(), variable: None }
    }
}

/// The most iterations of parallel loops at the same time, since each is a branch in memory.
pub const MOST_BRANCHES: u32 = 10_000;

/// The most iterations of all loops of a run.
// Nested loops multiply: without a limit, a short document could run practically for ever.
pub const MOST_TURNS: u64 = 1_000_000;

impl<'a> Interpreter<'a> {
    /// Returns what happens next to `agent`, or `None` while it waits.
    pub fn next(&self, state: &StepsState, agent: &AgentId) -> Option<Next> {
        let branch = state.branches.get(agent)?;
        let scope = Scope { steps: *self, state, branch };
        Some(match &branch.at {
            Position::Start => scope.first(self.outermost(branch)),
            Position::Body => scope.first(self.body(branch)),
            Position::Before(step) => scope.to(Way::To(self.document.find(step.as_str())?)),
            Position::Behind(step) => scope.behind(self.document.find(step.as_str())?),
            Position::Round => scope.round(self.innermost(branch)?, 0),
            Position::Waits { left: 0, .. } => Next::StepEvent(StepEvent::LoopLeft),
            Position::Waits { .. } | Position::In(_) | Position::Failed(_) => return None,
        })
    }

    /// Returns the list that a branch runs through.
    fn outermost(&self, branch: &Branch) -> &'a [StepIndex] {
        match branch.born.last().and_then(|born| self.document.find(born.of.as_str())) {
            Some(step) => self.list(step, StepList::Body),
            None => self.document.top(),
        }
    }

    fn body(&self, branch: &Branch) -> &'a [StepIndex] {
        self.innermost(branch).map_or(&[], |step| self.list(step, StepList::Body))
    }

    fn innermost(&self, branch: &Branch) -> Option<StepIndex> {
        self.document.find(branch.loops.last()?.of.as_str())
    }

    fn list(&self, step: StepIndex, list: StepList) -> &'a [StepIndex] {
        match (&self.document.step(step).kind, list) {
            (StepKind::If(step), StepList::Then) => &step.then,
            (StepKind::If(step), StepList::Else) => &step.otherwise,
            (StepKind::ForEach(step), StepList::Body) => &step.body,
            (StepKind::While(step), StepList::Body) => &step.body,
            (_, StepList::Steps) => self.document.top(),
            (
                StepKind::Exec(_)
                | StepKind::Agent(_)
                | StepKind::If(_)
                | StepKind::ForEach(_)
                | StepKind::While(_),
                _,
            ) => &[],
        }
    }
}

/// The next position in the structure of the document.
enum Way {
    /// This step.
    To(StepIndex),
    /// The end of an iteration of the innermost loop.
    Around(StepIndex),
    End,
}

impl Scope<'_> {
    /// Returns the first step of a list, or the position after an empty list.
    fn first(&self, list: &[StepIndex]) -> Next {
        match list.first() {
            Some(step) => self.to(Way::To(*step)),
            None => {
                // A branch at its start is in no loop of its own, so an empty list ends it.
                match self.steps.innermost(self.branch) {
                    Some(around) => self.to(Way::Around(around)),
                    None => Next::StepEvent(StepEvent::Ended),
                }
            }
        }
    }

    fn behind(&self, step: StepIndex) -> Next {
        self.to(self.after(step))
    }

    /// Returns the position after a step: its neighbour, or the position after the step around it.
    fn after(&self, mut step: StepIndex) -> Way {
        let document = self.steps.document;
        loop {
            let place = document.step(step).place;
            let list = place
                .parent
                .map_or_else(|| document.top(), |parent| self.steps.list(parent, place.list));
            if let Some(next) = list.get(place.position as usize + 1) {
                return Way::To(*next);
            }
            let Some(parent) = place.parent else { return Way::End };
            match &document.step(parent).kind {
                // The branch is one iteration of this loop: its end is the end of the branch, not a
                // new round.
                StepKind::ForEach(_) | StepKind::While(_) if self.is_born_into(parent) => {
                    return Way::End;
                }
                StepKind::ForEach(_) | StepKind::While(_) => return Way::Around(parent),
                StepKind::If(_) | StepKind::Exec(_) | StepKind::Agent(_) => step = parent,
            }
        }
    }

    /// Returns whether the branch is an iteration of this loop.
    fn is_born_into(&self, step: StepIndex) -> bool {
        let own = self.branch.born.last().filter(|_| self.branch.loops.is_empty());
        own.is_some_and(|own| own.of == self.steps.document.step(step).id)
    }

    /// Follows the structure until there is an event, a step or a failure.
    fn to(&self, mut way: Way) -> Next {
        loop {
            let step = match way {
                Way::To(step) => step,
                Way::Around(step) => return self.round(step, self.number() + 1),
                Way::End => return Next::StepEvent(StepEvent::Ended),
            };
            let key = self.branch.key(&self.steps.document.step(step).id);
            match &self.steps.document.step(step).kind {
                StepKind::Exec(_) | StepKind::Agent(_) => {
                    // A failed result does not count: its step runs again.
                    let known = self.state.results.get(&key).is_some_and(|stored| stored.ok);
                    return if known {
                        Next::StepEvent(StepEvent::Reused { key })
                    } else {
                        Next::Does { step, key }
                    };
                }
                StepKind::If(choice) => {
                    let list =
                        // No event is needed: the values that a branch sees change only by its own
                        // events.
                        if choice.condition.holds(self) { &choice.then } else { &choice.otherwise };
                    way = match list.first() {
                        Some(first) => Way::To(*first),
                        None => self.after(step),
                    };
                }
                StepKind::ForEach(each) => return self.enters(step, each, key),
                StepKind::While(_) => return self.loops(step, None, None),
            }
        }
    }

    fn number(&self) -> u32 {
        self.branch.loops.last().map_or(0, |frame| frame.number)
    }

    fn enters(&self, step: StepIndex, each: &ForEach, key: StepKey) -> Next {
        let count = match self.length(&each.list) {
            Ok(count) => count,
            Err(Some(other)) => {
                let message = format!("{} is {}, not a list", each.list, kind_of(&other));
                let text = other.is_string().then_some(&each.list);
                let variable = text.and_then(VariableProblem::not_a_list);
                let stuck = Stuck::new(ErrorCode::NotAnArray, key, message);
                return Next::Fails(Stuck { variable, ..stuck });
            }
            Err(None) => {
                let message = format!("{} has no value here", each.list);
                return Next::Fails(Stuck::new(ErrorCode::NotAnArray, key, message));
            }
        };
        // One more, because the main branch is not an iteration.
        let branches = self.state.branches.len().saturating_add(count as usize);
        if matches!(each.order, Order::Parallel { .. }) && branches > MOST_BRANCHES as usize + 1 {
            let message =
                format!("{} has {count} items; parallel loops take {MOST_BRANCHES}", each.list);
            return Next::Fails(Stuck::new(ErrorCode::TooLarge, key, message));
        }
        // Remember the key of the result: the body may replace the result that is visible now.
        let found =
            (each.list.root == Namespace::Results).then(|| self.seen(&each.list.name)).flatten();
        self.loops(step, found.cloned(), Some(count))
    }

    fn loops(&self, step: StepIndex, list: Option<StepKey>, count: Option<u32>) -> Next {
        let of = self.steps.document.step(step).id.clone();
        // Results of an earlier pass would otherwise be visible in the first iteration.
        let listed = self.steps.document.is_listed(step);
        let own = listed.then(|| of.clone());
        let inside = self.inside(step).chain(own);
        let hides = inside.filter(|id| self.seen(id.as_str()).is_some()).collect();
        Next::StepEvent(StepEvent::LoopEntered {
            frame: LoopFrame { of, list, count, number: 0, listed },
            hides,
        })
    }

    /// Iterates over the ids of all steps in a loop, which follow it directly in the document's
    /// list.
    fn inside(&self, step: StepIndex) -> impl Iterator<Item = StepId> {
        let behind = self.steps.document.steps().iter().skip(step.number() + 1);
        let is_inside =
            // Document order: the parent of a step inside is the loop or comes after it, and the
            // first step behind the loop has an earlier parent or none.
            move |inner: &&Step| inner.place.parent.is_some_and(|parent| parent >= step);
        behind.take_while(is_inside).map(|inner| inner.id.clone())
    }

    /// Decides whether the innermost loop begins this iteration.
    fn round(&self, step: StepIndex, number: u32) -> Next {
        if let Some(key) = self.branch.loop_key().filter(|_| self.state.turned >= MOST_TURNS) {
            let message = format!("the loops of a run take {MOST_TURNS} iterations");
            return Next::Fails(Stuck::new(ErrorCode::TooLarge, key, message));
        }
        match &self.steps.document.step(step).kind {
            StepKind::ForEach(each) => self.each(each, number),
            StepKind::While(step) => self.again(step, number),
            StepKind::Exec(_) | StepKind::Agent(_) | StepKind::If(_) => {
                Next::StepEvent(StepEvent::LoopLeft)
            }
        }
    }

    fn each(&self, each: &ForEach, number: u32) -> Next {
        // Never taken: `enters` has pushed a frame with a count.
        let Some(LoopFrame { of, count: Some(count), .. }) = self.branch.loops.last() else {
            return Next::StepEvent(StepEvent::LoopLeft);
        };
        match each.order {
            // An empty list leaves at once, in parallel loops too.
            _ if number >= *count => Next::StepEvent(StepEvent::LoopLeft),
            Order::Parallel { .. } => Next::Splits { of: of.clone(), count: *count },
            Order::Sequential => Next::StepEvent(StepEvent::IterationBegun { number }),
        }
    }

    /// Evaluates `until` before each iteration and once after the last.
    fn again(&self, step: &While, number: u32) -> Next {
        if step.until.holds(self) {
            return Next::StepEvent(StepEvent::LoopLeft);
        }
        let most = step.max_iters.get();
        if number < most {
            return Next::StepEvent(StepEvent::IterationBegun { number });
        }
        match step.on_max_iters {
            OnMaxIters::Continue => Next::StepEvent(StepEvent::LoopLeft),
            OnMaxIters::Fail => {
                let message = format!("`until` does not hold after {}", counted(most, "iteration"));
                let key = self.branch.loop_key();
                key.map_or(Next::StepEvent(StepEvent::LoopLeft), |key| {
                    Next::Fails(Stuck::new(ErrorCode::WhileNotConverged, key, message))
                })
            }
        }
    }
}

fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}
