//! Where schemas stand within a schema.
//!
//! One table for all drafts: a keyword that a draft does not know holds nothing that it checks, and
//! reading a schema there does no harm. Everything else (`const`, `enum`, `default`, `examples`,
//! unknown keywords) is data.

use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::pointer::join;

/// Which value a schema within a schema is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The very value that the outer one is about.
    Same,
    /// A part of it, or nothing yet.
    Other,
}

/// What stands behind a keyword.
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

/// A schema within a schema.
pub(crate) struct Inner<'a> {
    pub(crate) path: String,
    pub(crate) value: &'a Value,
    pub(crate) about: About,
}

/// The schemas within a schema that stands at a path.
pub(crate) fn inner<'a>(
    path: &str,
    schema: &'a Map<String, Value>,
    dialect: Dialect,
) -> Vec<Inner<'a>> {
    let hidden = dialect.is_old() && schema.contains_key("$ref");
    let mut found = Vec::new();
    for (keyword, shape, about) in KEYWORDS {
        let Some(value) = schema.get(keyword) else { continue };
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
    found.retain(|inner| is_schema(inner.value));
    found
}

/// Whether a value can be a schema at all.
pub(crate) fn is_schema(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Bool(_))
}

/// Whether a keyword holds values that a schema talks about.
pub(crate) fn holds_data(keyword: &str) -> bool {
    matches!(keyword, "const" | "enum" | "default" | "examples")
}
