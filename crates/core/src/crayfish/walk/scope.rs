//! What a strand can see.

use serde_json::Value as Json;

use crate::crayfish::document::Kind;
use crate::crayfish::flow::{Flow, Strand, Turning};
use crate::crayfish::key::Key;
use crate::crayfish::path::{Namespaces, Path, Root, ValuePath};

use super::Steps;

/// A strand, and everything that it can see.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub(super) steps: Steps<'a>,
    pub(super) flow: &'a Flow,
    pub(super) strand: &'a Strand,
}

impl<'a> Steps<'a> {
    /// What a strand can see where it is.
    pub fn scope(&self, flow: &'a Flow, strand: &'a Strand) -> Scope<'a> {
        Scope { steps: *self, flow, strand }
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

    /// The strand that this one is an iteration of.
    fn parent(&self) -> Option<Self> {
        let parent = self.flow.strands.get(self.strand.parent.as_ref()?)?;
        Some(Self { strand: parent, ..*self })
    }

    /// The key of what is seen under the name of a step.
    pub(super) fn seen(&self, name: &str) -> Option<&'a Key> {
        let mut scope = *self;
        loop {
            match scope.strand.seen.get(name) {
                Some(seen) => return seen.as_ref(),
                None => scope = scope.parent()?,
            }
        }
    }

    /// What the innermost `forEach` binds to this name.
    fn local(&self, name: &str) -> Option<&'a Json> {
        self.local_within(self.strand.loops.len(), name)
    }

    /// The same, of the outermost loops of the strand, so many of them.
    fn local_within(&self, loops: usize, name: &str) -> Option<&'a Json> {
        let own = self.strand.loops.get(..loops)?;
        for (place, turning) in own.iter().enumerate().rev() {
            if let Some(list) = self.binds(turning, name) {
                return self.item(place, list, (turning, turning.number));
            }
        }
        let parent = self.parent()?;
        let (place, turning) = parent.strand.loops.iter().enumerate().next_back()?;
        match (parent.binds(turning, name), self.strand.born.last()) {
            (Some(list), Some(born)) => parent.item(place, list, (turning, born.number)),
            _ => parent.local_within(place, name),
        }
    }

    /// The list of a loop, if it binds this name.
    fn binds(&self, turning: &Turning, name: &str) -> Option<&'a Path> {
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
        (turning, number): (&Turning, u32),
    ) -> Option<&'a Json> {
        let base = match list.root {
            Root::Vars => self.steps.vars.get(&list.name)?,
            Root::Results => self.result(turning.list.as_ref()?)?,
            Root::Locals => self.local_within(place, &list.name)?,
        };
        ValuePath(list.rest.clone()).lookup(base)?.get(number as usize)
    }
}
