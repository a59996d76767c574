//! A document that has been checked: what a run of the step language executes.
//!
//! Steps stand in one list in document order and refer to each other by index, so nothing here is
//! recursive: any document is cheap to walk, to share and to drop. Defaults are filled in, and
//! what cannot be meant cannot be written. [`Document::parse`] is the only way in.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::key::Key;
use super::name::StepId;
use super::problem::push_token;
use super::template::Template;

pub mod step;

pub use step::{
    Agent, Cap, Contract, Exec, ForEach, If, Invocation, Io, Kind, OnError, OnMaxIters, Order,
    Session, SessionMode, Source, StreamInput, While,
};

/// A workflow of steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What it is called.
    pub name: Option<String>,
    /// The author's version of it.
    pub version: Option<Number>,
    /// Its variables, before those of a request.
    pub vars: Map<String, Value>,
    /// Environment variables of all its exec steps; their templates see `vars` only.
    pub env: BTreeMap<String, Template>,
    pub(super) steps: Vec<Step>,
    pub(super) top: Vec<StepIndex>,
    pub(super) by_id: BTreeMap<StepId, StepIndex>,
}

/// The place of a step in its document's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepIndex(pub(super) u32);

/// One step, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its name.
    pub id: StepId,
    /// What it does.
    pub kind: Kind,
    /// Where it stands.
    pub place: Place,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The step whose list it stands in; none at the top.
    pub parent: Option<StepIndex>,
    /// Which list of that step.
    pub list: List,
    /// Its number in that list, from 0.
    pub position: u32,
    /// The innermost loop around it.
    pub enclosing_loop: Option<StepIndex>,
}

/// A list of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// `steps` of the document.
    Steps,
    /// `then` of an `if`.
    Then,
    /// `else` of an `if`.
    Else,
    /// `body` of a loop.
    Body,
}

impl List {
    /// The key it stands under.
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
    /// As a number, from 0, in document order.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

impl Document {
    /// All steps in document order: a step comes before those inside it.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The same, with their indexes.
    pub fn indexed(&self) -> impl Iterator<Item = (StepIndex, &Step)> {
        (0..).map(StepIndex).zip(&self.steps)
    }

    /// The steps of the outermost list.
    pub fn top(&self) -> &[StepIndex] {
        &self.top
    }

    /// The step at an index of this document.
    pub fn step(&self, index: StepIndex) -> &Step {
        &self.steps[index.number()]
    }

    /// The step of this name.
    pub fn find(&self, id: &str) -> Option<StepIndex> {
        self.by_id.get(id).copied()
    }

    /// The step that a key names, when that step has such keys: all its loops, in their order, and
    /// no iteration that its `while` cannot have.
    pub fn find_key(&self, key: &Key) -> Option<StepIndex> {
        let index = self.find(key.step.as_str())?;
        let mut iterations = key.iterations.iter().rev();
        for around in self.loops(index) {
            let iteration = iterations.next().filter(|i| i.of == self.step(around).id)?;
            if let Kind::While(step) = &self.step(around).kind
                && iteration.number >= step.max_iters.get()
            {
                return None;
            }
        }
        iterations.next().is_none().then_some(index)
    }

    /// The loops around a step, innermost first.
    pub fn loops(&self, index: StepIndex) -> impl Iterator<Item = StepIndex> {
        let outward = |around: &StepIndex| self.step(*around).place.enclosing_loop;
        std::iter::successors(self.step(index).place.enclosing_loop, outward)
    }

    /// The JSON pointer of a step in its document.
    pub fn pointer(&self, index: StepIndex) -> String {
        pointer(self.step(index).place, |index| self.step(index).place)
    }

    /// Every JSON Schema of the document with its pointer, in document order. Whether they are
    /// valid is for others to say.
    pub fn schemas(&self) -> impl Iterator<Item = (String, &Value)> {
        (0..self.steps.len()).flat_map(|number| {
            let step = &self.steps[number];
            let pointer = || pointer(step.place, |index| self.step(index).place);
            step.kind.schemas().into_iter().map(move |(at, schema)| (pointer() + &at, schema))
        })
    }

    /// The variables of a run: those of the request over those of the document, key by key.
    pub fn vars_with(&self, request: &Map<String, Value>) -> Map<String, Value> {
        let mut vars = self.vars.clone();
        vars.extend(request.iter().map(|(name, value)| (name.clone(), value.clone())));
        vars
    }
}

/// The JSON pointer of a step, from the places of the steps around it.
pub(super) fn pointer(own: Place, place: impl Fn(StepIndex) -> Place) -> String {
    let places: Vec<Place> =
        std::iter::successors(Some(own), |inner| inner.parent.map(&place)).collect();
    let mut pointer = String::new();
    for place in places.iter().rev() {
        push_token(&mut pointer, place.list.key());
        push_token(&mut pointer, &place.position.to_string());
    }
    pointer
}
