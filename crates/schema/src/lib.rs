//! JSON Schema behind one small door; the only user of the validator underneath.
//!
//! A schema is read together with every document it names, and all of it becomes one self-contained
//! document, the bundle: that is what is handed to others and what values are checked against, so
//! both always agree. A name is asked of a [`Library`] and of nothing else; the bundle holds only
//! references within itself, so nothing is ever fetched. Work is bounded: nesting, recursion and
//! regular expressions have limits, and each is a fault, never a crash. `format` is not asserted.

mod bundle;
mod compile;
mod dialect;
mod document;
mod graph;
mod keywords;
mod message;
mod pointer;
mod reference;
mod room;
mod validation;
mod work;

use jsonschema::Validator;
use serde_json::Value;

use bundle::Bundle;
use room::Room;

/// The most faults of a value that are told.
pub const FAULTS_MAX: usize = 30;

/// The deepest nesting of one schema document, in JSON levels.
pub const NESTING_MAX: usize = 256;

/// Documents by name.
pub trait Library {
    /// The document behind a basename as a `$ref` writes it (`Name` or `Name.json`), if there is one;
    /// an error says why it cannot be read.
    fn find(&self, name: &str) -> Result<Option<Value>, String>;

    /// Where it looks, for whoever is told that a document is not there: `looked in: schemas`.
    fn places(&self) -> Option<String> {
        None
    }
}

impl<F: Fn(&str) -> Result<Option<Value>, String>> Library for F {
    fn find(&self, name: &str) -> Result<Option<Value>, String> {
        self(name)
    }
}

/// A library without documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoLibrary;

impl Library for NoLibrary {
    fn find(&self, _: &str) -> Result<Option<Value>, String> {
        Ok(None)
    }
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct Fault {
    /// A JSON pointer into the schema as it was given, or into the value. What is wrong in a document
    /// that the schema names stands where it is named.
    pub path: String,
    /// What sort of fault it is.
    pub kind: Kind,
    /// What is wrong there.
    pub message: String,
}

/// A sort of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// There is no document of a name.
    Missing,
    /// The library cannot read the document of a name.
    Unreadable,
    /// A reference that is refused, or that leads to nothing in its document.
    Reference,
    /// A schema that leads to itself and never comes to an end.
    Circular,
    /// It is no schema of its draft.
    Invalid,
    /// It is of another draft than what it stands in, or what refers to it.
    Draft,
    /// Schemas inside each other, beyond the limit.
    TooDeep,
    /// Ways through a schema, beyond the limit.
    TooLarge,
    /// Not the schema is wrong, but a value.
    Value,
}

impl Fault {
    fn new(path: impl Into<String>, kind: Kind, message: impl Into<String>) -> Self {
        Self { path: path.into(), kind, message: message.into() }
    }
}

/// A schema that values can be checked against.
#[derive(Debug)]
pub struct Schema {
    bundled: Value,
    validator: Validator,
    room: Room,
}

impl Schema {
    /// Reads a schema and whatever it names. Either it is sound as a whole, or every fault that was
    /// found is told.
    pub fn compile(source: &Value, library: &dyn Library) -> Result<Self, Vec<Fault>> {
        let bundle = bundle::gather(source, library)?;
        let room = graph::measure(&bundle)?;
        let validator = compile::compile(&bundle)?;
        let Bundle { value: bundled, .. } = bundle;
        Ok(Self { bundled, validator, room })
    }

    /// The whole schema as one document: every name is a definition within it.
    pub fn bundled(&self) -> &Value {
        &self.bundled
    }

    /// What is wrong with a value: nothing, or up to [`FAULTS_MAX`] faults.
    pub fn errors(&self, value: &Value) -> Vec<Fault> {
        validation::errors((&self.validator, &self.bundled), &self.room, value)
    }
}

#[cfg(test)]
mod tests;
