//! The mistakes in a replies file, recorded while `parse` reads it.

use std::ops::Range;

use raymond_core::budget::{Cost, Micros};
use raymond_core::diagnostic::{Diagnostic, LocationFinder, Place};
use raymond_core::text::nearest;

use super::yaml::{Node, Value};

/// The parser of one file, with the mistakes found so far.
pub(super) struct Reader<'a> {
    file: &'a str,
    places: LocationFinder<'a>,
    mistakes: Vec<Diagnostic>,
    /// The cost of replies that do not state one.
    pub(super) cost: Cost,
}

/// A mistake was recorded, so the value cannot be used.
pub(super) struct Rejected;

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self {
            file,
            places: LocationFinder::new(text),
            mistakes: Vec::new(),
            cost: Cost::Reported(Micros::ZERO),
        }
    }

    /// Returns the mistakes from top to bottom, if there are any.
    pub(super) fn finish(mut self) -> Result<(), Vec<Diagnostic>> {
        if self.mistakes.is_empty() {
            return Ok(());
        }
        let start = |mistake: &Diagnostic| mistake.place.as_ref().map(|place| place.span.start);
        // Sections are parsed out of order, but an author reads from top to bottom.
        self.mistakes.sort_by_key(start);
        Err(self.mistakes)
    }

    /// Returns the name of the file.
    pub(super) fn file(&self) -> &str {
        self.file
    }

    pub(super) fn place(&mut self, span: Range<usize>) -> Place {
        self.places.of(span)
    }

    /// Records a mistake.
    pub(super) fn reject(
        &mut self,
        code: &'static str,
        span: Range<usize>,
        message: String,
    ) -> Rejected {
        self.record(Diagnostic::error(code, message), span)
    }

    /// Records an unknown key or an unknown kind of failure.
    pub(super) fn unknown(
        &mut self,
        what: &str,
        name: &str,
        span: Range<usize>,
        known: &[&str],
    ) -> Rejected {
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("known {what}s: {}", known.join(", ")),
        };
        self.no_such(what, name, span, hint)
    }

    pub(super) fn no_such(
        &mut self,
        what: &str,
        name: &str,
        span: Range<usize>,
        hint: String,
    ) -> Rejected {
        let mistake = Diagnostic::error("unknown-key", format!("unknown {what} {name:?}"));
        self.record(mistake.hint(hint), span)
    }

    fn record(&mut self, mistake: Diagnostic, span: Range<usize>) -> Rejected {
        let place = Some(self.places.of(span));
        self.mistakes.push(Diagnostic { place, ..mistake.in_file(self.file) });
        Rejected
    }

    /// Records a value of the wrong type.
    pub(super) fn mistyped(&mut self, node: &Node, expected: &str) -> Rejected {
        let message = format!("expected {expected}, found {}", node.value.kind());
        self.reject("wrong-type", node.span.clone(), message)
    }

    /// Returns the name in a key, which must be text.
    pub(super) fn name(&mut self, key: &Node) -> Result<String, Rejected> {
        match &key.value {
            Value::Text(name) => Ok(name.clone()),
            Value::Null
            | Value::Bool(_)
            | Value::Whole(_)
            | Value::Number(_)
            | Value::List(_)
            | Value::Map(_) => Err(self.mistyped(key, "a name")),
        }
    }
}
