//! The values that a branch can read at its position.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::crayfish::document::StepKind;
use crate::crayfish::key::StepKey;
use crate::crayfish::path::{Namespace, Namespaces, Path, Segment};
use crate::crayfish::state::{Branch, LoopFrame, StepsState};

use super::Interpreter;
use super::items::{Node, StoredResults};

/// A branch, and the values that it can read.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub(super) steps: Interpreter<'a>,
    pub(super) state: &'a StepsState,
    pub(super) branch: &'a Branch,
}

impl<'a> Interpreter<'a> {
    /// Returns the values that a branch can read at its position.
    pub fn scope(&self, state: &'a StepsState, branch: &'a Branch) -> Scope<'a> {
        Scope { steps: *self, state, branch }
    }
}

impl Namespaces for Scope<'_> {
    fn named(&self, root: Namespace, name: &str) -> Option<&Json> {
        match self.root(root, name)? {
            Node::Value(value) => Some(value),
            Node::Result(key) => self.stored().result(key),
            // Built and not stored: `lookup` returns them.
            Node::Entry(_) | Node::List(_) | Node::Item(..) => None,
        }
    }

    fn lookup(&self, path: &Path) -> Option<Cow<'_, Json>> {
        self.stored().build(self.node(path)?)
    }
}

impl<'a> Scope<'a> {
    fn stored(&self) -> StoredResults<'a> {
        StoredResults { document: self.steps.document, state: self.state }
    }

    /// Returns the length of the list at a path, or the value that is there instead of a list.
    pub(super) fn length(&self, path: &Path) -> Result<u32, Option<Cow<'a, Json>>> {
        match self.node(path) {
            Some(Node::List(list)) => Ok(list.count),
            Some(Node::Value(Json::Array(list))) => {
                Ok(u32::try_from(list.len()).unwrap_or(u32::MAX))
            }
            Some(other) => Err(self.stored().build(other)),
            None => Err(None),
        }
    }

    /// Returns the end of a path.
    fn node(&self, path: &Path) -> Option<Node<'a>> {
        self.stored().follow(self.root(path.root, &path.name)?, &path.rest)
    }

    /// Returns the beginning of a path.
    fn root(&self, root: Namespace, name: &str) -> Option<Node<'a>> {
        match root {
            Namespace::Vars => self.steps.vars.get(name).map(Node::Value),
            Namespace::Results => self.seen(name).map(Node::Result),
            Namespace::Locals => self.local(name),
        }
    }

    fn parent(&self) -> Option<Self> {
        let parent = self.state.branches.get(self.branch.parent.as_ref()?)?;
        Some(Self { branch: parent, ..*self })
    }

    /// Returns the key of the visible result of a step, from this branch outward.
    pub(super) fn seen(&self, name: &str) -> Option<&'a StepKey> {
        let mut scope = *self;
        loop {
            match scope.branch.seen.get(name) {
                // A `None` entry hides the step, so the parents must not be asked.
                Some(seen) => return seen.as_ref(),
                None => scope = scope.parent()?,
            }
        }
    }

    /// Returns the value that the innermost `forEach` binds to this name.
    fn local(&self, name: &str) -> Option<Node<'a>> {
        self.local_within(self.branch.loops.len(), name)
    }

    /// Looks for the binding in the outermost `loops` loops of the branch, then in its parents.
    fn local_within(&self, loops: usize, name: &str) -> Option<Node<'a>> {
        let own = self.branch.loops.get(..loops)?;
        for (place, frame) in own.iter().enumerate().rev() {
            if let Some(list) = self.binds(frame, name) {
                return self.item(place, list, frame, frame.number);
            }
        }
        let parent = self.parent()?;
        // The branch is an iteration of this loop. Its number is in `born`: the frame of a parallel
        // loop stays at 0.
        let (place, frame) = parent.branch.loops.iter().enumerate().next_back()?;
        match (parent.binds(frame, name), self.branch.born.last()) {
            (Some(list), Some(born)) => parent.item(place, list, frame, born.number),
            _ => parent.local_within(place, name),
        }
    }

    /// Returns the list of a loop if the loop binds this name.
    fn binds(&self, frame: &LoopFrame, name: &str) -> Option<&'a Path> {
        let document = self.steps.document;
        match &document.step(document.find(frame.of.as_str())?).kind {
            StepKind::ForEach(each) if each.item == name => Some(&each.list),
            StepKind::Exec(_)
            | StepKind::Agent(_)
            | StepKind::If(_)
            | StepKind::ForEach(_)
            | StepKind::While(_) => None,
        }
    }

    /// Returns an item of the list of the loop at index `place`.
    fn item(
        &self,
        place: usize,
        list: &Path,
        frame: &'a LoopFrame,
        number: u32,
    ) -> Option<Node<'a>> {
        // A list in `locals` was bound further out: only the loops before `place` may be searched.
        let base = match list.root {
            Namespace::Vars => Node::Value(self.steps.vars.get(&list.name)?),
            // The result that contained the list when the loop began, even if the body has replaced
            // it.
            Namespace::Results => Node::Result(frame.list.as_ref()?),
            Namespace::Locals => self.local_within(place, &list.name)?,
        };
        let stored = self.stored();
        stored.step_into(stored.follow(base, &list.rest)?, &Segment::Index(number as usize))
    }
}
