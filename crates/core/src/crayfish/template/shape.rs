//! JSON with expressions in its strings: the `input` of an agent step.
//!
//! Keys are not templates. The pieces are in the order in which a stack machine builds the value
//! from the inside out, so neither reading nor filling recurses. A value without an expression is
//! one piece, however deep it is.

use serde_json::Value;

use super::room::Room;
use super::{Namespaces, Part, Template, Unfilled, found};
use crate::crayfish::path::Path;
use crate::crayfish::problem::Report;

/// A JSON value whose strings are templates.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// A value without expressions.
    Plain(Value),
    /// A string with expressions, and its depth.
    Text(Template, usize),
    /// An array of the last values, this many.
    Array(usize),
    /// An object of the last values, under these keys.
    Object(Vec<String>),
}

impl Piece {
    fn into_plain(self) -> Option<Value> {
        match self {
            Self::Plain(value) => Some(value),
            Self::Text(..) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    fn parts(&self) -> &[Part] {
        match self {
            Self::Text(template, _) => template.parts(),
            Self::Plain(_) | Self::Array(_) | Self::Object(_) => &[],
        }
    }
}

/// The work that is left while a value is read.
enum Task<'a> {
    /// Read a value at this depth.
    Read(&'a Value, usize),
    EnterKey(&'a str),
    EnterItem(usize),
    Leave,
    /// All items of an array or an object have been read.
    Close(&'a Value),
}

impl Shape {
    /// Reads a value; `read` parses the template of every string, at its place in `report`.
    pub(in crate::crayfish) fn parse(
        value: &Value,
        report: &mut Report,
        read: &mut dyn FnMut(&mut Report, &str) -> Option<Template>,
    ) -> Option<Self> {
        let (mut pieces, mut complete) = (Vec::new(), true);
        let mut lengths = Vec::new();
        let mut tasks = vec![Task::Read(value, 0)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::EnterKey(key) => lengths.push(report.enter(key)),
                Task::EnterItem(index) => lengths.push(report.enter(&index.to_string())),
                Task::Leave => report.leave(lengths.pop().unwrap_or_default()),
                Task::Close(container) => close(&mut pieces, container),
                Task::Read(Value::String(text), level) => match read(report, text) {
                    Some(template) if template.paths().next().is_some() => {
                        pieces.push(Piece::Text(template, level));
                    }
                    Some(_) => pieces.push(Piece::Plain(Value::String(text.clone()))),
                    None => {
                        // Continue with a placeholder, so that all problems are reported and not
                        // only the first.
                        complete = false;
                        pieces.push(Piece::Plain(Value::Null));
                    }
                },
                Task::Read(value, level) => open(value, level, &mut tasks, &mut pieces),
            }
        }
        complete.then_some(Self { pieces })
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.pieces.iter().flat_map(Piece::parts).filter_map(Part::path)
    }

    /// Returns the value with every expression filled in; a lone expression keeps its type.
    pub fn fill(&self, names: &dyn Namespaces) -> Result<Value, Unfilled> {
        self.fill_into(names, &mut Room::new())
    }

    pub(in crate::crayfish) fn fill_into(
        &self,
        names: &dyn Namespaces,
        room: &mut Room,
    ) -> Result<Value, Unfilled> {
        let mut built: Vec<Value> = Vec::new();
        for piece in &self.pieces {
            let value = match piece {
                Piece::Plain(value) => {
                    room.take_value(value, 0)?;
                    value.clone()
                }
                Piece::Text(template, level) => text(template, *level, names, room)?,
                Piece::Array(length) => {
                    let inside = built.len().saturating_sub(*length);
                    assembled(None, built.drain(inside..))
                }
                Piece::Object(keys) => {
                    let inside = built.len().saturating_sub(keys.len());
                    assembled(Some(keys), built.drain(inside..))
                }
            };
            built.push(value);
        }
        Ok(built.pop().unwrap_or_default())
    }
}

fn text(
    template: &Template,
    level: usize,
    names: &dyn Namespaces,
    room: &mut Room,
) -> Result<Value, Unfilled> {
    let Some(path) = template.lone() else {
        return template.fill_into(names, room).map(Value::String);
    };
    let value = found(path, names)?;
    // The level counts, because the value is placed inside others: the whole must stay readable.
    room.take_value(&value, level)?;
    Ok(value.into_owned())
}

// Reversed: the last task pushed is the next one.
fn open<'a>(value: &'a Value, level: usize, tasks: &mut Vec<Task<'a>>, pieces: &mut Vec<Piece>) {
    match value {
        Value::Array(items) => {
            tasks.push(Task::Close(value));
            for (index, item) in items.iter().enumerate().rev() {
                tasks.extend([Task::Leave, Task::Read(item, level + 1), Task::EnterItem(index)]);
            }
        }
        Value::Object(fields) => {
            tasks.push(Task::Close(value));
            for (key, field) in fields.iter().rev() {
                tasks.extend([Task::Leave, Task::Read(field, level + 1), Task::EnterKey(key)]);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            pieces.push(Piece::Plain(value.clone()));
        }
    }
}

/// Closes a container: one plain piece without expressions, otherwise the piece that builds it.
fn close(pieces: &mut Vec<Piece>, container: &Value) {
    let (length, keys) = match container {
        Value::Object(fields) => (fields.len(), Some(fields.keys().cloned().collect())),
        Value::Array(items) => (items.len(), None),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    // A child with an expression ends with another kind of piece. So if the last pieces are all
    // plain, they are the children.
    let inside = pieces.len().saturating_sub(length);
    if !pieces[inside..].iter().all(|piece| matches!(piece, Piece::Plain(_))) {
        pieces.push(keys.map_or(Piece::Array(length), Piece::Object));
        return;
    }
    let values = pieces.split_off(inside).into_iter().filter_map(Piece::into_plain);
    pieces.push(Piece::Plain(assembled(keys.as_deref(), values)));
}

/// Builds an object of these keys, or an array without keys.
fn assembled(keys: Option<&[String]>, values: impl Iterator<Item = Value>) -> Value {
    match keys {
        Some(keys) => Value::Object(keys.iter().cloned().zip(values).collect()),
        None => Value::Array(values.collect()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn value_without_expression_is_one_piece() {
        let pieces = |value: &Value| {
            let read = &mut |_: &mut Report, text: &str| Template::parse(text).ok();
            Shape::parse(value, &mut Report::new(), read).unwrap().pieces
        };
        let plain = json!({ "a": ["b", { "c": ["{{.d}}", null] }], "e": "" });
        assert_eq!(pieces(&plain), [Piece::Plain(plain.clone())]);
        let text = Piece::Text(Template::parse("{{vars.x}}").unwrap(), 1);
        let expected = [Piece::Plain(plain.clone()), text, Piece::Array(2)];
        assert_eq!(pieces(&json!([plain, "{{vars.x}}"])), expected);
    }
}
