//! A checked document: the input of the interpreter.
//!
//! Steps are in one list in document order and refer to each other by index. Nothing here is
//! recursive, so any document is cheap to walk, to share and to drop. Defaults are filled in, and
//! the types cannot express a contradiction. [`Document::parse`] is the only constructor.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Number, Value};

use super::key::StepKey;
use super::name::StepId;
use super::template::{Shape, Template};
use crate::text::push_pointer_token;

mod paths;
pub mod step;

pub use step::{
    AgentSettings, AgentStep, Cap, Contract, ExecStep, ForEach, If, InputSource, Invocation, Io,
    OnError, OnMaxIters, Order, SessionChoice, SessionMode, StepKind, StreamInput, While,
};

/// A checked workflow of steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub name: Option<String>,
    /// The author's version number.
    pub version: Option<Number>,
    /// Default variables; those of a request replace them.
    pub vars: Map<String, Value>,
    /// Environment variables of all exec steps; their templates can read `vars` only.
    pub env: BTreeMap<String, Template>,
    /// The result of a run; without it, the results of all steps are the result.
    pub output: Option<Shape>,
    pub(super) steps: Vec<Step>,
    pub(super) top: Vec<StepIndex>,
    pub(super) by_id: BTreeMap<StepId, StepIndex>,
    /// The loops whose items a path reads, and the loops inside them.
    pub(super) listed: BTreeSet<StepIndex>,
}

/// The index of a step in its document's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepIndex(pub(super) u32);

/// One step, its kind and its place in the document.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub id: StepId,
    pub kind: StepKind,
    pub place: StepPlace,
    /// One line for readers.
    pub description: Option<String>,
}

/// The place of a step in the tree of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPlace {
    /// The step whose list contains it; `None` at the top level.
    pub parent: Option<StepIndex>,
    pub list: StepList,
    /// The index in that list, from 0.
    pub position: u32,
    pub enclosing_loop: Option<StepIndex>,
}

/// One of the lists that can contain steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepList {
    /// `steps` of the document.
    Steps,
    /// `then` of an `if`.
    Then,
    /// `else` of an `if`.
    Else,
    /// `body` of a loop.
    Body,
}

impl StepList {
    /// Returns the JSON key of the list.
    pub fn key(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Then => "then",
            Self::Else => "else",
            Self::Body => "body",
        }
    }
}

impl StepIndex {
    /// Returns the index as a number, from 0, in document order.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

impl Document {
    /// Returns all steps in document order: a step comes before the steps inside it.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Iterates over all steps with their indexes.
    pub fn indexed(&self) -> impl Iterator<Item = (StepIndex, &Step)> {
        (0..).map(StepIndex).zip(&self.steps)
    }

    pub fn top(&self) -> &[StepIndex] {
        &self.top
    }

    pub fn step(&self, index: StepIndex) -> &Step {
        // In range: only this document hands out its indexes.
        &self.steps[index.number()]
    }

    pub fn find(&self, id: &str) -> Option<StepIndex> {
        self.by_id.get(id).copied()
    }

    /// Returns the step of a key if the document can produce this key: the key names all loops
    /// around the step in order, and no iteration beyond `maxIters` of a `while`.
    pub fn find_key(&self, key: &StepKey) -> Option<StepIndex> {
        let index = self.find(key.step.as_str())?;
        // Keys list loops outermost first, `loops` goes outward, so the key is read in reverse.
        let mut iterations = key.iterations.iter().rev();
        for around in self.loops(index) {
            let iteration = iterations.next().filter(|i| i.of == self.step(around).id)?;
            if let StepKind::While(step) = &self.step(around).kind
                && iteration.number >= step.max_iters.get()
            {
                return None;
            }
        }
        // A key with loops that the step is not in does not name it.
        iterations.next().is_none().then_some(index)
    }

    /// Returns the place of a key in the order in which a sequential walk reaches its steps: the
    /// loops around it with their iterations, then the step. Unknown steps come last.
    pub fn walk_position(&self, key: &StepKey) -> Vec<(StepIndex, u64)> {
        let index = |id: &StepId| self.find(id.as_str()).unwrap_or(StepIndex(u32::MAX));
        let loops = key.iterations.iter().map(|round| (index(&round.of), u64::from(round.number)));
        loops.chain([(index(&key.step), 0)]).collect()
    }

    /// Iterates over the loops around a step, innermost first.
    pub fn loops(&self, index: StepIndex) -> impl Iterator<Item = StepIndex> {
        let outward = |around: &StepIndex| self.step(*around).place.enclosing_loop;
        std::iter::successors(self.step(index).place.enclosing_loop, outward)
    }

    /// Returns whether a path reads the items of a loop, or of a loop around it.
    // The state counts the iterations of such a loop only.
    pub fn is_listed(&self, index: StepIndex) -> bool {
        self.listed.contains(&index)
    }

    /// Finds the loops whose items a path reads.
    pub(super) fn with_listed_loops(mut self) -> Self {
        let read = self.paths().filter(|path| path.leads_to_items());
        let read = read.map(|path| path.name.as_str());
        let sources = self.steps.iter().filter_map(|step| step.kind.input_source());
        let read = read.chain(sources.map(|source| source.step.as_str()));
        let is_loop = |index: &StepIndex| self.step(*index).kind.is_loop();
        let mut listed: BTreeSet<StepIndex> =
            read.filter_map(|name| self.find(name)).filter(is_loop).collect();
        // A loop comes before the loops inside it, so one pass finds all of them.
        let loops = self.indexed().filter(|(_, step)| step.kind.is_loop());
        for (index, step) in loops {
            if step.place.enclosing_loop.is_some_and(|around| listed.contains(&around)) {
                listed.insert(index);
            }
        }
        self.listed = listed;
        self
    }

    pub fn pointer(&self, index: StepIndex) -> String {
        pointer(self.step(index).place, |index| self.step(index).place)
    }

    /// Iterates over every JSON Schema of the document with its pointer, in document order. The
    /// schemas are not checked here: core has no JSON Schema validator.
    pub fn schemas(&self) -> impl Iterator<Item = (String, &Value)> {
        (0..self.steps.len()).flat_map(|number| {
            let step = &self.steps[number];
            let pointer = || pointer(step.place, |index| self.step(index).place);
            step.kind.schemas().into_iter().map(move |(at, schema)| (pointer() + &at, schema))
        })
    }

    /// Returns the variables of a run: those of the request replace those of the document, key by
    /// key.
    pub fn vars_with(&self, request: &Map<String, Value>) -> Map<String, Value> {
        let mut vars = self.vars.clone();
        vars.extend(request.iter().map(|(name, value)| (name.clone(), value.clone())));
        vars
    }
}

/// Returns the JSON pointer of a step, built from the places of the steps around it.
pub(super) fn pointer(own: StepPlace, place: impl Fn(StepIndex) -> StepPlace) -> String {
    let places: Vec<StepPlace> =
        std::iter::successors(Some(own), |inner| inner.parent.map(&place)).collect();
    let mut pointer = String::new();
    for place in places.iter().rev() {
        push_pointer_token(&mut pointer, place.list.key());
        push_pointer_token(&mut pointer, &place.position.to_string());
    }
    pointer
}
