//! The results of all iterations of a loop, as a list.
//!
//! The list is not stored: it consists of results that the state has under their keys, and of the
//! number of iterations. A path is followed without building the list, and only the value at its
//! end is built. An item is an object from the ids of the steps directly in the body to their
//! results. For a loop in the body, it has an object with the items of that loop.

use std::borrow::Cow;

use serde_json::{Map, Value as Json};

use crate::crayfish::document::{Document, StepIndex};
use crate::crayfish::key::{Iteration, StepKey};
use crate::crayfish::name::StepId;
use crate::crayfish::path::{ITEMS, Segment};
use crate::crayfish::state::StepsState;

/// A place in the values of a scope.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node<'a> {
    /// A stored value.
    Value(&'a Json),
    /// The result of a step; for a loop, its failure, and its items below it.
    Result(&'a StepKey),
    /// The result of a step as a part of an item.
    Entry(StepKey),
    /// The items of a loop.
    List(Items),
    /// An item of a loop.
    Item(Items, u32),
}

/// The items of one execution of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Items {
    /// The key of the loop.
    of: StepKey,
    pub(super) count: u32,
}

impl Items {
    /// Returns the key of a step in an iteration.
    fn key(&self, number: u32, step: &StepId) -> StepKey {
        let mut iterations = self.of.iterations.clone();
        iterations.push(Iteration { of: self.of.step.clone(), number });
        StepKey { iterations, step: step.clone() }
    }
}

/// The results of a run, with the document that orders them.
#[derive(Clone, Copy)]
pub(super) struct StoredResults<'a> {
    pub(super) document: &'a Document,
    pub(super) state: &'a StepsState,
}

impl<'a> StoredResults<'a> {
    pub(super) fn result(self, key: &StepKey) -> Option<&'a Json> {
        self.state.results.get(key)?.json()
    }

    pub(super) fn follow(self, from: Node<'a>, segments: &[Segment]) -> Option<Node<'a>> {
        segments.iter().try_fold(from, |node, segment| self.step_into(node, segment))
    }

    /// Returns the part of a value that a segment of a path leads to.
    pub(super) fn step_into(self, node: Node<'a>, segment: &Segment) -> Option<Node<'a>> {
        match node {
            Node::Value(value) => segment.of(value).map(Node::Value),
            Node::Result(key) => self.part_of_result(key, segment),
            Node::Entry(key) => self.part_of_result(&key, segment),
            Node::List(items) => {
                let Segment::Index(number) = segment else { return None };
                let number = u32::try_from(*number).ok().filter(|number| *number < items.count)?;
                Some(Node::Item(items, number))
            }
            Node::Item(items, number) => {
                let Segment::Key(step) = segment else { return None };
                let document = self.document;
                let step = document.find(step)?;
                let key = items.key(number, &document.step(step).id);
                let is_inside = document.step(step).place.enclosing_loop == self.loop_of(&items);
                is_inside.then_some(Node::Entry(key)).filter(|entry| self.has(entry))
            }
        }
    }

    fn part_of_result(self, key: &StepKey, segment: &Segment) -> Option<Node<'a>> {
        match self.items(key) {
            Some(items) if segment.is_key(ITEMS) => Some(Node::List(items)),
            Some(_) | None => segment.of(self.result(key)?).map(Node::Value),
        }
    }

    /// Returns the value of a place.
    pub(super) fn build(self, node: Node<'a>) -> Option<Cow<'a, Json>> {
        match node {
            Node::Value(value) => Some(Cow::Borrowed(value)),
            Node::Result(key) => self.result(key).map(Cow::Borrowed),
            Node::Entry(key) => self.entry(&key),
            Node::List(items) => Some(Cow::Owned(self.list(&items))),
            Node::Item(items, number) => Some(Cow::Owned(self.object(&items, number))),
        }
    }

    /// Returns the items of a loop that has ended.
    fn items(self, key: &StepKey) -> Option<Items> {
        let count = *self.state.lists.get(key)?;
        Some(Items { of: key.clone(), count })
    }

    fn loop_of(self, items: &Items) -> Option<StepIndex> {
        self.document.find(items.of.step.as_str())
    }

    fn has(self, entry: &Node<'_>) -> bool {
        let Node::Entry(key) = entry else { return false };
        self.state.results.contains_key(key) || self.state.lists.contains_key(key)
    }

    fn entry(self, key: &StepKey) -> Option<Cow<'a, Json>> {
        let result = self.result(key);
        let Some(items) = self.items(key) else { return result.map(Cow::Borrowed) };
        // The failure of a loop, if a loop around it has collected one, and its items.
        let mut entry = result.and_then(Json::as_object).cloned().unwrap_or_default();
        entry.insert(ITEMS.to_owned(), self.list(&items));
        Some(Cow::Owned(Json::Object(entry)))
    }

    // Recursion through `entry` is as deep as loops are nested, which a document limits to 500.
    fn list(self, items: &Items) -> Json {
        (0..items.count).map(|number| self.object(items, number)).collect()
    }

    fn object(self, items: &Items, number: u32) -> Json {
        let Some(around) = self.loop_of(items) else { return Json::Object(Map::new()) };
        // Document order: the steps in a loop follow it directly, and the first one behind the loop
        // has an earlier parent or none.
        let behind = self.document.steps().iter().skip(around.number() + 1);
        let inside = behind.take_while(|step| step.place.parent >= Some(around));
        let directly = inside.filter(|step| step.place.enclosing_loop == Some(around));
        let entries = directly.filter_map(|step| {
            let result = self.entry(&items.key(number, &step.id))?;
            Some((step.id.to_string(), result.into_owned()))
        });
        Json::Object(entries.collect())
    }
}
