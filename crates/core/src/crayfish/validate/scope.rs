//! The locals and results that are visible at a place, and the origin of their values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::leaves::Known;
use crate::crayfish::path::{Namespace, Path};

/// The author of a value; decides whether a shell may run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameOrigin {
    Author,
    /// A step, in `results`: the output of a program or a model, which is not trusted.
    Step,
}

/// The locals of the `forEach` steps around the current place.
#[derive(Debug, Default)]
pub(super) struct ValidationScope<'a> {
    /// The origins of each name; the innermost binding is last.
    bound: BTreeMap<&'a str, Vec<NameOrigin>>,
    /// The number of enclosing loops with an unreadable name, which may bind any local.
    unreadable: usize,
    /// The ids of the enclosing loops, outermost first.
    loops: Vec<&'a str>,
    /// The result fields of all steps.
    pub(super) steps: Known<'a>,
}

impl<'a> ValidationScope<'a> {
    /// Returns the scope before the first of these steps.
    pub(super) fn of(steps: &'a [Value]) -> Self {
        Self { steps: Known::new(steps), ..Self::default() }
    }

    pub(super) fn bind(&mut self, name: Option<&'a str>, origin: NameOrigin) {
        match name {
            Some(name) => self.bound.entry(name).or_default().push(origin),
            // Without this, every use of the local would be a problem that only repeats the first.
            None => self.unreadable += 1,
        }
    }

    pub(super) fn unbind(&mut self, name: Option<&'a str>) {
        let Some(name) = name else {
            self.unreadable -= 1;
            return;
        };
        if let Some(origins) = self.bound.get_mut(name) {
            origins.pop();
            if origins.is_empty() {
                self.bound.remove(name);
            }
        }
    }

    pub(super) fn enter_loop(&mut self, id: &'a str) {
        self.loops.push(id);
    }

    pub(super) fn leave_loop(&mut self) {
        self.loops.pop();
    }

    /// Returns whether the current place is in this loop.
    pub(super) fn is_within(&self, id: &str) -> bool {
        self.loops.contains(&id)
    }

    /// Returns the origin of the value at a path; an unbound local counts as the author's, because
    /// it is reported as unknown anyway.
    pub(super) fn origin(&self, path: &Path) -> NameOrigin {
        match path.root {
            // Also variables of a request: its caller chooses the programs, too.
            Namespace::Vars => NameOrigin::Author,
            Namespace::Results => NameOrigin::Step,
            Namespace::Locals => {
                let origins = self.bound.get(path.name.as_str());
                origins.and_then(|origins| origins.last()).copied().unwrap_or(NameOrigin::Author)
            }
        }
    }

    /// Returns whether a local may be bound here.
    pub(super) fn binds(&self, name: &str) -> bool {
        self.unreadable > 0 || self.bound.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.bound.keys().copied()
    }
}
