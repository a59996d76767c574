//! JSON Schema with bounded work; the only crate that uses the `jsonschema` validator.
//!
//! A schema is read together with every document it names, and all become one self-contained
//! document, the bundle. The bundle is sent to others, and values are checked against it, so both
//! agree. Names are resolved by a [`Library`] only, and nothing is ever fetched. Nesting, recursion
//! and regular expressions have limits; exceeding one is a fault, never a crash. `format` is not
//! asserted.

mod bundle;
mod compile;
mod cost_bound;
mod dialect;
mod document;
mod graph;
mod keywords;
mod message;
mod pointer;
mod reference;
mod stack_bound;
mod validation;

use jsonschema::Validator;
use serde_json::Value;

use bundle::Bundle;
use stack_bound::StackBound;

/// The most faults of a value that are reported.
pub const FAULTS_MAX: usize = 30;

/// The deepest nesting of one schema document, in JSON levels.
// At 16 KiB of stack per level (`stack_bound`), compiling needs at most 4 MiB.
pub const NESTING_MAX: usize = 256;

/// Named schema documents.
pub trait Library {
    /// Returns the document of a file name as a `$ref` spells it (`Name` or `Name.json`), if it
    /// exists, or the reason why it cannot be read.
    fn find(&self, name: &str) -> Result<Option<Value>, String>;

    /// Returns the places it searches, for messages about a missing document: `looked in: schemas`.
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

/// A fault of a schema or a value, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct SchemaFault {
    /// A JSON pointer into the given schema or into the value. A fault in a named document is
    /// reported at the reference to it.
    pub path: String,
    pub kind: FaultKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// No document has the name.
    Missing,
    /// The library cannot read the document.
    Unreadable,
    /// A reference is refused, or its target does not exist in its document.
    Reference,
    /// A schema refers to itself without going into the value, so checking would never end.
    Circular,
    /// It is not a valid schema of its draft.
    Invalid,
    /// Its draft differs from the schema around it, or from a referring document.
    Draft,
    /// Schemas are nested beyond the limit.
    TooDeep,
    /// A value would be checked against too many schemas.
    TooLarge,
    /// A value, not the schema, is wrong.
    Value,
}

impl SchemaFault {
    fn new(path: impl Into<String>, kind: FaultKind, message: impl Into<String>) -> Self {
        Self { path: path.into(), kind, message: message.into() }
    }
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    bundled: Value,
    validator: Validator,
    stack: StackBound,
}

impl Schema {
    /// Reads a schema and all documents it refers to, or returns all faults that were found.
    pub fn compile(source: &Value, library: &dyn Library) -> Result<Self, Vec<SchemaFault>> {
        let bundle = bundle::gather(source, library)?;
        // Measured before compiling, because the validator itself recurses without a limit.
        let stack = graph::measure(&bundle)?;
        let validator = compile::compile(&bundle)?;
        let Bundle { value: bundled, .. } = bundle;
        Ok(Self { bundled, validator, stack })
    }

    /// Returns the schema as one document, with every named document a definition.
    pub fn bundled(&self) -> &Value {
        &self.bundled
    }

    /// Returns the faults of a value, at most [`FAULTS_MAX`].
    pub fn errors(&self, value: &Value) -> Vec<SchemaFault> {
        validation::errors(&self.validator, &self.bundled, &self.stack, value)
    }
}

#[cfg(test)]
mod tests;
