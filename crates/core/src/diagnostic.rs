//! Mistakes in a workflow: which file, where in it, what is wrong and what to do.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// One mistake, or one thing worth a look, in a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Whether it stops the start.
    pub severity: Severity,
    /// A stable short name, such as `unknown-key`.
    pub code: &'static str,
    /// The file it stands in; none when it is about the scope as a whole.
    pub file: Option<String>,
    /// Where in the file; none when it is about the whole file.
    pub place: Option<Place>,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Whether a diagnostic stops the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The workflow cannot run.
    Error,
    /// It can, but probably not as meant.
    Warning,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// Bytes of the whole file.
    pub span: Range<usize>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { severity: Severity::Error, code, file: None, place: None, message, hint: None }
    }

    /// A warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// The same, in this file.
    #[must_use]
    pub fn in_file(self, file: impl Into<String>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    /// The same, at these bytes of `text`.
    #[must_use]
    pub fn at(self, text: &str, span: Range<usize>) -> Self {
        Self { place: Some(Place::of(text, span)), ..self }
    }

    /// The same, with advice.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl Place {
    /// The place of `span` in `text`; a span that does not fit is pulled back to a character border.
    pub fn of(text: &str, span: Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.bytes().filter(|b| *b == b'\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            span: start..end,
        }
    }
}

/// The places of one text. Those that are asked for in the order of the text cost no more than to read it
/// once, however many they are.
#[derive(Debug)]
pub struct LocationFinder<'t> {
    text: &'t str,
    /// Where the last one began, with its line and column.
    last: Cell<(usize, usize, usize)>,
}

impl<'t> LocationFinder<'t> {
    /// Those of this text.
    pub fn new(text: &'t str) -> Self {
        Self { text, last: Cell::new((0, 1, 1)) }
    }

    /// The place of `span`, as [`Place::of`] finds it.
    pub fn of(&self, span: Range<usize>) -> Place {
        let start = self.text.floor_char_boundary(span.start.min(self.text.len()));
        let end = self.text.floor_char_boundary(span.end.clamp(start, self.text.len()));
        let (mut from, mut line, mut column) = self.last.get();
        if start < from {
            (from, line, column) = (0, 1, 1);
        }
        for character in self.text[from..start].chars() {
            (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        self.last.set((start, line, column));
        Place { line, column, span: start..end }
    }
}

/// Advice for the mistake that YAML makes easiest: a text such as `done: yes` without quotes.
pub fn yaml_hint(problem: &str) -> Option<String> {
    let colon = problem.contains("mapping values are not allowed");
    colon.then(|| "a text that holds `: ` needs quotes".to_owned())
}

/// `START.md:3:7: message`, as compilers write it.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            if let Some(place) = &self.place {
                write!(f, "{}:{}:", place.line, place.column)?;
            }
            f.write_str(" ")?;
        }
        match self.severity {
            Severity::Error => f.write_str("error: ")?,
            Severity::Warning => f.write_str("warning: ")?,
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_the_same_in_whatever_order_they_are_asked_for() {
        let text = "ä\nbc\r\n\n🦀 e";
        let places = LocationFinder::new(text);
        for first in 0..text.len() + 2 {
            for second in 0..text.len() + 2 {
                assert_eq!(places.of(first..second), Place::of(text, first..second));
                assert_eq!(places.of(second..second), Place::of(text, second..second));
            }
        }
    }
}
