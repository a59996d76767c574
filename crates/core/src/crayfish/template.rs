//! Text with expressions in it: `deploy {{vars.name}} to {{ locals.host.names[0] }}`.
//!
//! One pass: what is filled in is never read again. Braces that do not hold a path of names are
//! text, so `{{.Name}}`, `{{` and `}}` stay as they are; a path into an unknown namespace is an
//! error. Objects and arrays are filled in as compact JSON, null as nothing. A lone expression in
//! an agent's `input` keeps its type: that is [`Shape`].

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

/// A text with expressions in it, or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text as it stands.
    Text(String),
    /// The value of an expression.
    Value(Path),
}

/// Why a template could not be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// An expression that leads nowhere.
    #[error("`{{{{{expression}}}}}` has no value here", expression = .0.expression())]
    Unknown(Path),
    /// What another step left does not hold what is to be read.
    #[error("{}", no_input(.step, .path.as_deref()))]
    NoInput {
        /// The other step.
        step: StepId,
        /// The way from its `json`; none when it has not been done.
        path: Option<String>,
    },
    /// The result would be too large or too deep.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

impl Part {
    /// The path of an expression.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Text(_) => None,
            Self::Value(path) => Some(path),
        }
    }
}

impl Template {
    /// Reads a template; every expression that cannot be right is told, and left out.
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

    /// A template without a fault.
    #[cfg(test)]
    pub(super) fn parse(text: &str) -> Result<Self, Vec<BadPath>> {
        let (template, faults) = Self::read(text);
        if faults.is_empty() { Ok(template) } else { Err(faults) }
    }

    /// The pieces, in order; two texts never follow each other.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The paths of its expressions, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(Part::path)
    }

    /// The path, when the template is one expression and nothing else.
    pub fn lone(&self) -> Option<&Path> {
        match self.parts.as_slice() {
            [Part::Value(path)] => Some(path),
            _ => None,
        }
    }

    /// The text with every expression filled in.
    pub fn fill(&self, names: &dyn Namespaces) -> Result<String, Unfilled> {
        self.fill_into(names, &mut Room::new())
    }

    /// The same, within what room is left.
    pub(super) fn fill_into(
        &self,
        names: &dyn Namespaces,
        room: &mut Room,
    ) -> Result<String, Unfilled> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => {
                    room.take(text.len())?;
                    out.push_str(text);
                }
                Part::Value(path) => push_value(&mut out, found(path, names)?, room)?,
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

/// `{{ path }}` at the beginning of `text`: the path as written, read, and what is left.
fn braces(text: &str) -> Option<(&str, Vec<Segment>, &str)> {
    let inside = text.strip_prefix("{{")?.trim_ascii_start();
    let (first, tail) = path::key(inside)?;
    if first.starts_with(|c: char| c.is_numeric()) {
        return None;
    }
    let (mut segments, rest) = path::segments(tail);
    segments.insert(0, Segment::Key(first.to_owned()));
    let expression = &inside[..inside.len() - rest.len()];
    let after = rest.trim_ascii_start().strip_prefix("}}")?;
    Some((expression, segments, after))
}

fn found<'a>(path: &Path, names: &'a dyn Namespaces) -> Result<&'a Value, Unfilled> {
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
