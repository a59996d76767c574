//! Diagnostics: mistakes in a workflow, with file, place, message and hint.
//!
//! They are data and not text, because the command line, JSON output and tests show them in
//! different forms. A [`Remedy`] names no flag: the caller knows the flags. Failures of a run are
//! in [`crate::failure`].

use std::cell::Cell;
use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// One mistake or warning in a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Whether it prevents a start.
    pub severity: Severity,
    /// A stable short name, such as `unknown-key`.
    pub code: &'static str,
    /// The file; `None` if it is about the whole scope.
    pub file: Option<String>,
    /// The place in the file; `None` if it is about the whole file.
    pub place: Option<Place>,
    /// The message, in lower case and without a full stop.
    pub message: String,
    /// A hint in the imperative.
    pub hint: Option<String>,
    /// A remedy outside the workflow, which the caller puts into words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

/// A change of the settings or the command that fixes a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// Limit the iterations of the loop.
    LimitIterations,
    /// Run the states as a workflow instead of a loop.
    RunAsWorkflow,
    /// Run without a cap, or let another backend answer.
    RunWithoutCap,
}

/// Whether a diagnostic prevents a start.
// The order of the variants puts errors before warnings of the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The workflow cannot run.
    Error,
    /// The workflow can run, but probably not as intended.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The bytes of the file.
    pub span: Range<usize>,
}

impl Diagnostic {
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            severity: Severity::Error,
            code,
            file: None,
            place: None,
            message,
            hint: None,
            remedy: None,
        }
    }

    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    #[must_use]
    pub fn in_file(self, file: impl Into<String>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    /// Sets the place to these bytes of `text`.
    #[must_use]
    pub fn at(self, text: &str, span: Range<usize>) -> Self {
        Self { place: Some(Place::of(text, span)), ..self }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    #[must_use]
    pub fn remedy(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }
}

impl Place {
    /// Returns the place of `span` in `text`. A span that does not fit is moved back to a character
    /// border.
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

/// A finder of places in one text. Places that are requested in the order of the text cost together
/// one pass over it.
#[derive(Debug)]
pub struct LocationFinder<'t> {
    text: &'t str,
    /// The start of the last place, with its line and column.
    // A `Cell`, so that a closure that only borrows the finder can use it.
    last: Cell<(usize, usize, usize)>,
}

impl<'t> LocationFinder<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, last: Cell::new((0, 1, 1)) }
    }

    /// Returns the place of `span`, as [`Place::of`] does.
    pub fn of(&self, span: Range<usize>) -> Place {
        let start = self.text.floor_char_boundary(span.start.min(self.text.len()));
        let end = self.text.floor_char_boundary(span.end.clamp(start, self.text.len()));
        let (mut from, mut line, mut column) = self.last.get();
        // An earlier place than the last one: start again from the top.
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

/// Returns a hint for the two easiest mistakes in YAML: a text such as `done: yes` without quotes,
/// and a key without a colon. `before` is the text before the problem.
pub fn yaml_hint(problem: &str, before: &str) -> Option<String> {
    // The wording is the library's. If it changes, only the hint is lost.
    if !problem.contains("mapping values are not allowed") {
        return None;
    }
    let line = before.rsplit('\n').next().unwrap_or_default();
    // The colon is the one of a key, so YAML read the line above as the start of the same text.
    Some(if line.contains(": ") {
        "a text that holds `: ` needs quotes".to_owned()
    } else {
        "the line above has no colon: write `KEY: VALUE`".to_owned()
    })
}

/// Formats as `START.md:3:7: message`, as compilers do.
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
    fn places_do_not_depend_on_query_order() {
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
