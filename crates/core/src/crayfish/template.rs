//! Text with expressions: `deploy {{vars.name}} to {{ locals.host.names[0] }}`.
//!
//! Filling in takes one pass: a filled-in value is never scanned for expressions. Braces that do
//! not contain a path are text, so `{{.Name}}`, `{{` and `}}` stay unchanged; a path into an
//! unknown namespace is an error. Objects and arrays become compact JSON, null becomes nothing. A
//! lone expression in an agent's `input` keeps its type: see [`Shape`].

use std::borrow::Cow;

use serde_json::Value;

use super::name::StepId;
use super::path::{self, BadPath, Namespaces, Path, Segment};
pub(in crate::crayfish) use lookalike::lookalikes;
pub(in crate::crayfish) use room::Room;
pub use room::{LIMIT, Overflow};
pub use shape::Shape;

mod lookalike;
mod room;
mod shape;
#[cfg(test)]
mod tests;

/// A text with any number of expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    Value(Path),
}

/// The reason why a template could not be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// An expression without a value.
    #[error("`{{{{{expression}}}}}` has no value here", expression = .0.expression())]
    Unknown(Path),
    /// The result of another step does not contain the value to read.
    #[error("{}", no_input(.step, .path.as_deref()))]
    NoInput {
        step: StepId,
        /// The path inside its `json`; `None` if the step has not run.
        path: Option<String>,
    },
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

impl Part {
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Text(_) => None,
            Self::Value(path) => Some(path),
        }
    }
}

impl Template {
    /// Reads a template, and returns an error for every invalid expression, which is left out.
    pub fn read(text: &str) -> (Self, Vec<BadPath>) {
        let (mut parts, mut faults) = (Vec::new(), Vec::new());
        let (mut rest, mut looked) = (text, 0);
        while let Some(found) = rest[looked..].find("{{") {
            let start = looked + found;
            let Some((expression, segments, after)) = braces(&rest[start..]) else {
                // The second brace may open an expression: `{{{vars.x}}`.
                looked = start + 1;
                continue;
            };
            push_text(&mut parts, &rest[..start]);
            match Path::from_segments(expression, segments) {
                Ok(path) => parts.push(Part::Value(path)),
                Err(fault) => faults.push(fault),
            }
            (rest, looked) = (after, 0);
        }
        push_text(&mut parts, rest);
        (Self { parts }, faults)
    }

    #[cfg(test)]
    pub(super) fn parse(text: &str) -> Result<Self, Vec<BadPath>> {
        let (template, faults) = Self::read(text);
        if faults.is_empty() { Ok(template) } else { Err(faults) }
    }

    /// Returns the pieces in order; two texts are never adjacent.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(Part::path)
    }

    /// Returns the path if the template is one expression and nothing else.
    pub fn lone(&self) -> Option<&Path> {
        match self.parts.as_slice() {
            [Part::Value(path)] => Some(path),
            _ => None,
        }
    }

    /// Returns the text with every expression filled in.
    pub fn fill(&self, names: &dyn Namespaces) -> Result<String, Unfilled> {
        self.fill_into(names, &mut Room::new())
    }

    /// Fills in the text within the remaining size budget.
    pub(super) fn fill_into(
        &self,
        names: &dyn Namespaces,
        room: &mut Room,
    ) -> Result<String, Unfilled> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => {
                    // Before the copy, so that nothing larger than the budget is ever built.
                    room.take(text.len())?;
                    out.push_str(text);
                }
                Part::Value(path) => {
                    let value = found(path, names)?;
                    push_value(&mut out, &value, room)?;
                }
            }
        }
        Ok(out)
    }
}

fn no_input(step: &StepId, path: Option<&str>) -> String {
    match path {
        Some(path) => format!("{step} left no `json` that has a value at `{path}`"),
        None => format!("the step {step} was not done"),
    }
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
}

/// Splits `{{ path }}` from the beginning of `text`: its text, its segments, and the rest.
fn braces(text: &str) -> Option<(&str, Vec<Segment>, &str)> {
    let inside = text.strip_prefix("{{")?.trim_ascii_start();
    // Braces without a path are text: other tools use them, too (`docker ps --format`).
    let (first, tail) = path::key(inside)?;
    // `{{1.5}}` cannot be a namespace: it is text.
    if first.starts_with(|c: char| c.is_numeric()) {
        return None;
    }
    let (mut segments, rest) = path::segments(tail);
    segments.insert(0, Segment::Key(first.to_owned()));
    let expression = &inside[..inside.len() - rest.len()];
    let after = rest.trim_ascii_start().strip_prefix("}}")?;
    Some((expression, segments, after))
}

fn found<'a>(path: &Path, names: &'a dyn Namespaces) -> Result<Cow<'a, Value>, Unfilled> {
    path.lookup(names).ok_or_else(|| Unfilled::Unknown(path.clone()))
}

fn push_value(out: &mut String, value: &Value, room: &mut Room) -> Result<(), Unfilled> {
    match value {
        Value::Null => {}
        Value::String(text) => {
            room.take(text.len())?;
            out.push_str(text);
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            room.take_value(value, 0)?;
            out.push_str(&value.to_string());
        }
    }
    Ok(())
}
