//! Which locals and results can be seen, and where the values of locals come from.

use std::collections::BTreeMap;

use serde_json::Value;

use super::leaves::Known;
use crate::crayfish::path::{Path, Root};

/// Who wrote the value of a local.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The author or the caller, in `vars`.
    Author,
    /// A step, in `results`: a program's or a model's output.
    Step,
}

/// The locals of the `forEach` steps around the place that is being looked at.
#[derive(Debug, Default)]
pub(super) struct Scope<'a> {
    /// The innermost one of a name is the last.
    bound: BTreeMap<&'a str, Vec<Origin>>,
    /// Loops around whose name could not be read: anything may be bound there.
    unreadable: usize,
    /// What steps leave, wherever they stand.
    pub(super) steps: Known<'a>,
}

impl<'a> Scope<'a> {
    /// What can be seen before the first of these steps.
    pub(super) fn of(steps: &'a [Value]) -> Self {
        Self { steps: Known::new(steps), ..Self::default() }
    }

    pub(super) fn bind(&mut self, name: Option<&'a str>, origin: Origin) {
        match name {
            Some(name) => self.bound.entry(name).or_default().push(origin),
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

    /// Where the value at a path comes from; a local that is not bound says nothing about it.
    pub(super) fn origin(&self, path: &Path) -> Origin {
        match path.root {
            Root::Vars => Origin::Author,
            Root::Results => Origin::Step,
            Root::Locals => {
                let origins = self.bound.get(path.name.as_str());
                origins.and_then(|origins| origins.last()).copied().unwrap_or(Origin::Author)
            }
        }
    }

    /// Whether a local may be bound here.
    pub(super) fn binds(&self, name: &str) -> bool {
        self.unreadable > 0 || self.bound.contains_key(name)
    }

    /// The locals that are bound here.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.bound.keys().copied()
    }
}
