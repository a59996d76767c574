//! YAML as a tree of nodes with positions. This is the only module that uses the YAML library.

use std::fmt;
use std::ops::Range;

use raymond_core::diagnostic::{Diagnostic, yaml_hint};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location, Options, Spanned};

/// A value and its position in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Value {
    /// Describes the type for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean (quote it to make it text)",
            Self::Whole(_) | Self::Number(_) => "a number (quote it to make it text)",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// The maximum depth of nested lists and mappings. Replies need far less, and without optimisation
/// each level takes 32 KiB of the stack.
const DEEPEST: usize = 16;

pub(super) fn read(text: &str) -> Result<Node, Box<Diagnostic>> {
    let mut options = Options::default();
    options.with_snippet = false;
    // Otherwise `no` and `on` would become booleans instead of texts.
    options.strict_booleans = true;
    if let Some(budget) = &mut options.budget {
        budget.max_depth = DEEPEST;
    }
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let span = error.location().map_or(0..0, |location| span(text, location));
        let message = match error.without_snippet() {
            Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
                format!("lists and mappings are nested more than {DEEPEST} levels deep")
            }
            error => error.to_string(),
        };
        // The diagnostic already shows the position, and options of the library do not help
        // authors.
        let message = message.split(" at line ").next().unwrap_or_default();
        let message = message.split(", set ").next().unwrap_or_default();
        let mistake = Diagnostic::error("invalid-yaml", message).at(text, span);
        Box::new(Diagnostic { hint: yaml_hint(message), ..mistake })
    })
}

/// Returns the bytes of a location.
fn span(text: &str, location: Location) -> Range<usize> {
    // Errors of the scanner have only a line and a column.
    if location.span().byte_offset().is_some() {
        return bytes(location);
    }
    let from_zero = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).saturating_sub(1);
    let (line, column) = (from_zero(location.line()), from_zero(location.column()));
    let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let within = text[before..].chars().take(column).map(char::len_utf8);
    let start = before + within.sum::<usize>();
    start..start
}

fn bytes(location: Location) -> Range<usize> {
    let span = location.span();
    let start = span.byte_offset().unwrap_or(0);
    let length = span.byte_len().unwrap_or(0);
    let (start, length) = (start.try_into(), length.try_into());
    let start: usize = start.unwrap_or(0);
    start..start.saturating_add(length.unwrap_or(0))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { span: bytes(spanned.defined), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Whole(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(entry) = map.next_entry()? {
            nodes.push(entry);
        }
        Ok(Value::Map(nodes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_type_and_position() {
        let text = "A: \"x\"\nB:\n  - yes\n  - 1: 0.5\n    '2': ~\n  - true\n";
        let Value::Map(entries) = read(text).unwrap().value else {
            panic!("no mapping");
        };
        let (key, value) = &entries[0];
        assert_eq!((&key.value, key.span.start), (&Value::Text("A".into()), 0));
        assert_eq!((&value.value, value.span.start), (&Value::Text("x".into()), 3));
        let Value::List(items) = &entries[1].1.value else {
            panic!("no list");
        };
        assert_eq!(items[0].value, Value::Text("yes".into()));
        assert_eq!(&text[items[0].span.start..][..3], "yes");
        let Value::Map(inner) = &items[1].value else {
            panic!("no mapping");
        };
        let found: Vec<_> = inner.iter().map(|(k, v)| (&k.value, &v.value)).collect();
        let expected =
            [(&Value::Whole(1), &Value::Number(0.5)), (&Value::Text("2".into()), &Value::Null)];
        assert_eq!(found, expected);
        assert_eq!(&text[inner[1].0.span.start..][..3], "'2'");
        assert_eq!(items[2].value, Value::Bool(true));
    }

    #[test]
    fn invalid_yaml_is_reported_with_position() {
        let check = |text: &str, expected: &str| {
            let found = read(text).unwrap_err().in_file("r.yaml").to_string();
            assert_eq!(found, expected);
        };
        check("A: [1\nB: 2", "r.yaml:2:2: error: illegal placement of ':' indicator");
        check("A: 1\nA: 2", "r.yaml:2:1: error: duplicate mapping key: A");
        check("A: 'x", "r.yaml:1:4: error: unclosed quote");
    }
}
