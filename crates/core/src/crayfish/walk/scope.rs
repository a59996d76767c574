//! What a branch can see.

use serde_json::Value as Json;

use crate::crayfish::document::Kind;
use crate::crayfish::key::Key;
use crate::crayfish::path::{Namespaces, Path, Root, ValuePath};
use crate::crayfish::state::{Branch, LoopFrame, StepsState};

use super::Steps;

/// A branch, and everything that it can see.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub(super) steps: Steps<'a>,
    pub(super) flow: &'a StepsState,
    pub(super) branch: &'a Branch,
}

impl<'a> Steps<'a> {
    /// What a branch can see where it is.
    pub fn scope(&self, flow: &'a StepsState, branch: &'a Branch) -> Scope<'a> {
        Scope { steps: *self, flow, branch }
    }
}

impl Namespaces for Scope<'_> {
    fn named(&self, root: Root, name: &str) -> Option<&Json> {
        match root {
            Root::Vars => self.steps.vars.get(name),
            Root::Results => self.result(self.seen(name)?),
            Root::Locals => self.local(name),
        }
    }
}

impl<'a> Scope<'a> {
    fn result(&self, key: &Key) -> Option<&'a Json> {
        self.flow.results.get(key)?.json()
    }

    /// The branch that this one is an iteration of.
    fn parent(&self) -> Option<Self> {
        let parent = self.flow.branches.get(self.branch.parent.as_ref()?)?;
        Some(Self { branch: parent, ..*self })
    }

    /// The key of what is seen under the name of a step.
    pub(super) fn seen(&self, name: &str) -> Option<&'a Key> {
        let mut scope = *self;
        loop {
            match scope.branch.seen.get(name) {
                Some(seen) => return seen.as_ref(),
                None => scope = scope.parent()?,
            }
        }
    }

    /// What the innermost `forEach` binds to this name.
    fn local(&self, name: &str) -> Option<&'a Json> {
        self.local_within(self.branch.loops.len(), name)
    }

    /// The same, of the outermost loops of the branch, so many of them.
    fn local_within(&self, loops: usize, name: &str) -> Option<&'a Json> {
        let own = self.branch.loops.get(..loops)?;
        for (place, turning) in own.iter().enumerate().rev() {
            if let Some(list) = self.binds(turning, name) {
                return self.item(place, list, (turning, turning.number));
            }
        }
        let parent = self.parent()?;
        let (place, turning) = parent.branch.loops.iter().enumerate().next_back()?;
        match (parent.binds(turning, name), self.branch.born.last()) {
            (Some(list), Some(born)) => parent.item(place, list, (turning, born.number)),
            _ => parent.local_within(place, name),
        }
    }

    /// The list of a loop, if it binds this name.
    fn binds(&self, turning: &LoopFrame, name: &str) -> Option<&'a Path> {
        let document = self.steps.document;
        match &document.step(document.find(turning.of.as_str())?).kind {
            Kind::ForEach(each) if each.item == name => Some(&each.list),
            Kind::Exec(_) | Kind::Agent(_) | Kind::If(_) | Kind::ForEach(_) | Kind::While(_) => {
                None
            }
        }
    }

    /// An item of the list of the loop at this place.
    fn item(
        &self,
        place: usize,
        list: &Path,
        (turning, number): (&LoopFrame, u32),
    ) -> Option<&'a Json> {
        let base = match list.root {
            Root::Vars => self.steps.vars.get(&list.name)?,
            Root::Results => self.result(turning.list.as_ref()?)?,
            Root::Locals => self.local_within(place, &list.name)?,
        };
        ValuePath(list.rest.clone()).lookup(base)?.get(number as usize)
    }
}
