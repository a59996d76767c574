//! The keywords that contain schemas.
//!
//! One table serves all drafts. A keyword that is unknown to a draft checks nothing there, so
//! reading it as a schema does no harm. Everything else (`const`, `enum`, `default`, `examples`,
//! unknown keywords) is data.

use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::pointer::join;

/// The value that a nested schema applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The same value as the outer schema.
    Same,
    /// A part of that value, or no value yet.
    Other,
}

/// The shape of a keyword's value.
#[derive(Clone, Copy)]
enum Shape {
    One,
    List,
    Map,
    OneOrList,
}

const KEYWORDS: [(&str, Shape, About); 22] = [
    ("$defs", Shape::Map, About::Other),
    ("additionalItems", Shape::One, About::Other),
    ("additionalProperties", Shape::One, About::Other),
    ("allOf", Shape::List, About::Same),
    ("anyOf", Shape::List, About::Same),
    ("contains", Shape::One, About::Other),
    ("contentSchema", Shape::One, About::Other),
    ("definitions", Shape::Map, About::Other),
    ("dependencies", Shape::Map, About::Same),
    ("dependentSchemas", Shape::Map, About::Same),
    ("else", Shape::One, About::Same),
    ("if", Shape::One, About::Same),
    ("items", Shape::OneOrList, About::Other),
    ("not", Shape::One, About::Same),
    ("oneOf", Shape::List, About::Same),
    ("patternProperties", Shape::Map, About::Other),
    ("prefixItems", Shape::List, About::Other),
    ("properties", Shape::Map, About::Other),
    ("propertyNames", Shape::One, About::Other),
    ("then", Shape::One, About::Same),
    ("unevaluatedItems", Shape::One, About::Other),
    ("unevaluatedProperties", Shape::One, About::Other),
];

/// A nested schema.
pub(crate) struct Inner<'a> {
    pub(crate) path: String,
    pub(crate) value: &'a Value,
    pub(crate) about: About,
}

/// Returns the schemas nested in a schema, with their paths.
pub(crate) fn inner<'a>(
    path: &str,
    schema: &'a Map<String, Value>,
    dialect: Dialect,
) -> Vec<Inner<'a>> {
    let hidden = dialect.is_old() && schema.contains_key("$ref");
    let mut found = Vec::new();
    for (keyword, shape, about) in KEYWORDS {
        let Some(value) = schema.get(keyword) else { continue };
        // In old drafts a `$ref` hides these schemas, but references may still lead to them.
        let about = if hidden { About::Other } else { about };
        let path = join(path, keyword);
        let mut add = |path, value| found.push(Inner { path, value, about });
        match (shape, value) {
            (Shape::Map, Value::Object(map)) => {
                map.iter().for_each(|(key, value)| add(join(&path, key), value));
            }
            (Shape::List | Shape::OneOrList, Value::Array(list)) => {
                let items = list.iter().enumerate();
                items.for_each(|(index, value)| add(join(&path, &index.to_string()), value));
            }
            (Shape::One | Shape::OneOrList, value) => add(path, value),
            (Shape::Map | Shape::List, _) => {}
        }
    }
    // `dependencies` may also contain lists of names, which are not schemas.
    found.retain(|inner| is_schema(inner.value));
    found
}

/// Returns whether a value can be a schema by its type.
pub(crate) fn is_schema(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Bool(_))
}

/// Returns whether a keyword contains data and not schemas.
pub(crate) fn holds_data(keyword: &str) -> bool {
    matches!(keyword, "const" | "enum" | "default" | "examples")
}
