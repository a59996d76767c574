//! The interpreter: what a strand comes to next.
//!
//! It looks at the document and at where the [`Flow`] stands, and names one thing at a time; whoever
//! asked makes it so, and asks again. An `if` leaves no trace: its condition is weighed on the way.
//! Nothing is done here: a step that has to be done is only named.

use serde_json::{Map, Value as Json};

use crate::ids::AgentId;
use crate::view::counted;

use super::code::Code;
use super::document::{Document, ForEach, Kind, List, OnMaxIters, Order, Step, StepIndex, While};
use super::flow::{At, Fact, Flow, Strand, Turning};
use super::key::Key;
use super::name::StepId;
use super::path::Root;

mod scope;
#[cfg(test)]
mod tests;

pub use scope::Scope;

/// What a run of steps is made of, beside where it stands.
#[derive(Clone, Copy)]
pub struct Steps<'a> {
    /// The document.
    pub document: &'a Document,
    /// Its variables, with those of the request over them.
    pub vars: &'a Map<String, Json>,
}

/// What a strand comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This is so.
    Fact(Fact),
    /// These iterations begin, each as a strand of its own, and this one waits for them.
    Splits {
        /// The loop.
        of: StepId,
        /// How many.
        count: u32,
    },
    /// This step is to be done.
    Does {
        /// The step.
        step: StepIndex,
        /// Its key.
        key: Key,
    },
    /// It cannot go on.
    Fails(Stuck),
}

/// Why a strand cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The stable code.
    pub code: Code,
    /// The step at which it fails.
    pub key: Key,
    /// What happened.
    pub message: String,
}

/// The most iterations of parallel loops: all of them are there at the same time.
pub const MOST_STRANDS: u32 = 10_000;

/// The most iterations of all loops of a run.
pub const MOST_TURNS: u64 = 1_000_000;

impl<'a> Steps<'a> {
    /// What `agent` comes to next; none while it has to wait.
    pub fn next(&self, flow: &Flow, agent: &AgentId) -> Option<Next> {
        let strand = flow.strands.get(agent)?;
        let scope = Scope { steps: *self, flow, strand };
        Some(match &strand.at {
            At::Start => scope.first(self.outermost(strand)),
            At::Body => scope.first(self.body(strand)),
            At::Before(step) => scope.to(Way::To(self.document.find(step.as_str())?)),
            At::Behind(step) => scope.behind(self.document.find(step.as_str())?),
            At::Round => scope.round(self.innermost(strand)?, 0),
            At::Waits { left: 0, .. } => Next::Fact(Fact::Leaves),
            At::Waits { .. } | At::In(_) | At::Failed(_) => return None,
        })
    }

    /// The list that a strand goes through.
    fn outermost(&self, strand: &Strand) -> &'a [StepIndex] {
        match strand.born.last().and_then(|born| self.document.find(born.of.as_str())) {
            Some(step) => self.list(step, List::Body),
            None => self.document.top(),
        }
    }

    fn body(&self, strand: &Strand) -> &'a [StepIndex] {
        self.innermost(strand).map_or(&[], |step| self.list(step, List::Body))
    }

    fn innermost(&self, strand: &Strand) -> Option<StepIndex> {
        self.document.find(strand.loops.last()?.of.as_str())
    }

    fn list(&self, step: StepIndex, list: List) -> &'a [StepIndex] {
        match (&self.document.step(step).kind, list) {
            (Kind::If(step), List::Then) => &step.then,
            (Kind::If(step), List::Else) => &step.otherwise,
            (Kind::ForEach(step), List::Body) => &step.body,
            (Kind::While(step), List::Body) => &step.body,
            (_, List::Steps) => self.document.top(),
            (
                Kind::Exec(_) | Kind::Agent(_) | Kind::If(_) | Kind::ForEach(_) | Kind::While(_),
                _,
            ) => &[],
        }
    }
}

/// What follows structurally.
enum Way {
    /// This step.
    To(StepIndex),
    /// The end of an iteration of the innermost loop.
    Around(StepIndex),
    /// The end of the strand.
    End,
}

impl Scope<'_> {
    /// The first step of a list, or what is behind an empty one.
    fn first(&self, list: &[StepIndex]) -> Next {
        match list.first() {
            Some(step) => self.to(Way::To(*step)),
            None => {
                // A strand at its start is in no loop of its own.
                match self.steps.innermost(self.strand) {
                    Some(around) => self.to(Way::Around(around)),
                    None => Next::Fact(Fact::Ended),
                }
            }
        }
    }

    fn behind(&self, step: StepIndex) -> Next {
        self.to(self.after(step))
    }

    /// What comes after a step: its neighbour, or whatever it stands in.
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
                Kind::ForEach(_) | Kind::While(_) if self.is_born_into(parent) => return Way::End,
                Kind::ForEach(_) | Kind::While(_) => return Way::Around(parent),
                Kind::If(_) | Kind::Exec(_) | Kind::Agent(_) => step = parent,
            }
        }
    }

    /// Whether the strand is an iteration of this loop.
    fn is_born_into(&self, step: StepIndex) -> bool {
        let own = self.strand.born.last().filter(|_| self.strand.loops.is_empty());
        own.is_some_and(|own| own.of == self.steps.document.step(step).id)
    }

    /// Goes on until something has to be said.
    fn to(&self, mut way: Way) -> Next {
        loop {
            let step = match way {
                Way::To(step) => step,
                Way::Around(step) => return self.round(step, self.number() + 1),
                Way::End => return Next::Fact(Fact::Ended),
            };
            let key = self.strand.key(&self.steps.document.step(step).id);
            match &self.steps.document.step(step).kind {
                Kind::Exec(_) | Kind::Agent(_) => {
                    let known = self.flow.results.get(&key).is_some_and(|stored| stored.ok);
                    return if known {
                        Next::Fact(Fact::Met { key })
                    } else {
                        Next::Does { step, key }
                    };
                }
                Kind::If(choice) => {
                    let list =
                        if choice.condition.holds(self) { &choice.then } else { &choice.otherwise };
                    way = match list.first() {
                        Some(first) => Way::To(*first),
                        None => self.after(step),
                    };
                }
                Kind::ForEach(each) => return self.enters(step, each, key),
                Kind::While(_) => return self.loops(step, None, None),
            }
        }
    }

    fn number(&self) -> u32 {
        self.strand.loops.last().map_or(0, |turning| turning.number)
    }

    fn enters(&self, step: StepIndex, each: &ForEach, key: Key) -> Next {
        let list = match each.list.lookup(self) {
            Some(Json::Array(list)) => list,
            Some(other) => {
                let message = format!("{} is {}, not a list", each.list, kind_of(other));
                return Next::Fails(Stuck { code: Code::NotAnArray, key, message });
            }
            None => {
                let message = format!("{} has no value here", each.list);
                return Next::Fails(Stuck { code: Code::NotAnArray, key, message });
            }
        };
        let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
        let strands = self.flow.strands.len().saturating_add(count as usize);
        if matches!(each.order, Order::Parallel { .. }) && strands > MOST_STRANDS as usize + 1 {
            let message =
                format!("{} has {count} items; parallel loops take {MOST_STRANDS}", each.list);
            return Next::Fails(Stuck { code: Code::TooLarge, key, message });
        }
        let found = (each.list.root == Root::Results).then(|| self.seen(&each.list.name)).flatten();
        self.loops(step, found.cloned(), Some(count))
    }

    fn loops(&self, step: StepIndex, list: Option<Key>, count: Option<u32>) -> Next {
        let of = self.steps.document.step(step).id.clone();
        let hides = self.inside(step).filter(|id| self.seen(id.as_str()).is_some()).collect();
        Next::Fact(Fact::Loops { turning: Turning { of, list, count, number: 0 }, hides })
    }

    /// The names of all steps in a loop: they stand right behind it in the document.
    fn inside(&self, step: StepIndex) -> impl Iterator<Item = StepId> {
        let behind = self.steps.document.steps().iter().skip(step.number() + 1);
        let is_inside =
            move |inner: &&Step| inner.place.parent.is_some_and(|parent| parent >= step);
        behind.take_while(is_inside).map(|inner| inner.id.clone())
    }

    /// Whether the innermost loop begins this iteration.
    fn round(&self, step: StepIndex, number: u32) -> Next {
        if let Some(key) = self.strand.loop_key().filter(|_| self.flow.turned >= MOST_TURNS) {
            let message = format!("the loops of a run take {MOST_TURNS} iterations");
            return Next::Fails(Stuck { code: Code::TooLarge, key, message });
        }
        match &self.steps.document.step(step).kind {
            Kind::ForEach(each) => self.each(each, number),
            Kind::While(step) => self.again(step, number),
            Kind::Exec(_) | Kind::Agent(_) | Kind::If(_) => Next::Fact(Fact::Leaves),
        }
    }

    fn each(&self, each: &ForEach, number: u32) -> Next {
        let Some(Turning { of, count: Some(count), .. }) = self.strand.loops.last() else {
            return Next::Fact(Fact::Leaves);
        };
        match each.order {
            _ if number >= *count => Next::Fact(Fact::Leaves),
            Order::Parallel { .. } => Next::Splits { of: of.clone(), count: *count },
            Order::Sequential => Next::Fact(Fact::Turns { number }),
        }
    }

    /// The condition is weighed before each iteration, and once after the last.
    fn again(&self, step: &While, number: u32) -> Next {
        if step.until.holds(self) {
            return Next::Fact(Fact::Leaves);
        }
        let most = step.max_iters.get();
        if number < most {
            return Next::Fact(Fact::Turns { number });
        }
        match step.on_max_iters {
            OnMaxIters::Continue => Next::Fact(Fact::Leaves),
            OnMaxIters::Fail => {
                let message = format!("`until` does not hold after {}", counted(most, "iteration"));
                let key = self.strand.loop_key();
                key.map_or(Next::Fact(Fact::Leaves), |key| {
                    Next::Fails(Stuck { code: Code::WhileNotConverged, key, message })
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
