//! The values of a replies file, from the YAML that [`raymond_core::yaml`] parses.
//!
//! Aliases are copied within a budget, merge keys (`<<`) are applied, and repeated keys are
//! refused.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use raymond_core::diagnostic::{Diagnostic, yaml_hint};
use raymond_core::yaml::{self, Content, YamlProblem};

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

/// The maximum depth of nested lists and mappings, where an alias counts like its value. Replies
/// need far less.
const DEEPEST: usize = 16;

/// How many bytes of memory the values may take for each byte of the file, and in addition to that.
/// Values without aliases take at most 72 (`:,` is a mapping with an empty key and value). A few
/// lines of nested aliases could take any amount.
const ROOM_PER_BYTE: usize = 128;
const ROOM: usize = 1024 * 1024;

pub(super) fn read(text: &str) -> Result<Node, Box<Diagnostic>> {
    let root = yaml::parse(text, &(0..text.len()));
    let read = root.and_then(|root| match root {
        Some(root) => Copier { text, room: ROOM + ROOM_PER_BYTE * text.len() }.node(root, 1),
        None => Ok(Node { value: Value::Null, span: 0..0 }),
    });
    read.map_err(|YamlProblem { span, message }| {
        let hint = yaml_hint(&message, text.get(..span.start).unwrap_or_default());
        let mistake = Diagnostic::error("invalid-yaml", message).at(text, span);
        Box::new(Diagnostic { hint, ..mistake })
    })
}

/// Copies shared nodes into a tree.
struct Copier<'t> {
    text: &'t str,
    /// The bytes that the tree may still take.
    room: usize,
}

type Shared = Rc<yaml::Node>;

impl Copier<'_> {
    fn node(&mut self, node: Shared, depth: usize) -> Result<Node, YamlProblem> {
        // A node without aliases is moved, not copied.
        let yaml::Node { span, content } = Rc::unwrap_or_clone(node);
        let is_collection = matches!(content, Content::List(_) | Content::Map(_));
        if is_collection && depth > DEEPEST {
            let message = format!("lists and mappings are nested more than {DEEPEST} levels deep");
            return Err(YamlProblem::new(span, message));
        }
        // Before the children are copied, so that nested aliases are refused before they take
        // memory.
        self.count(&content, &span)?;
        let value = match content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(value),
            Content::Number(written) => number(&written),
            Content::Text(text) => Value::Text(text),
            Content::List(items) => {
                let items = items.into_iter().map(|item| self.node(item, depth + 1));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Content::Map(entries) => Value::Map(self.map(entries, depth)?),
        };
        Ok(Node { value, span })
    }

    /// Takes the memory of a value from the room.
    fn count(&mut self, content: &Content, span: &Range<usize>) -> Result<(), YamlProblem> {
        let text = if let Content::Text(text) = content { text.len() } else { 0 };
        let left = self.room.checked_sub(size_of::<Node>() + text);
        self.room =
            left.ok_or_else(|| YamlProblem::new(span.clone(), "the aliases copy too much"))?;
        Ok(())
    }

    /// Copies a mapping: first its own entries, then those of its merge keys with other names.
    fn map(
        &mut self,
        entries: Vec<(Shared, Shared)>,
        depth: usize,
    ) -> Result<Vec<(Node, Node)>, YamlProblem> {
        // Own entries come first wherever the merge key is, because YAML lets them override merged
        // ones.
        let (merged, own): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(key, _)| self.is_merge_key(key));
        let (mut copied, mut names) = (Vec::new(), BTreeSet::new());
        for (key, node) in own {
            let key = self.node(key, depth + 1)?;
            if let Some(name) = name(&key.value)
                // With the kind, because `1` and `"1"` are different keys.
                && !names.insert((key.value.kind(), name.clone()))
            {
                return Err(YamlProblem::new(key.span, format!("duplicate mapping key: {name}")));
            }
            copied.push((key, self.node(node, depth + 1)?));
        }
        for (_, node) in merged {
            let mut entries = self.merged(node, depth)?;
            entries.retain(|(key, _)| {
                name(&key.value).is_none_or(|name| names.insert((key.value.kind(), name)))
            });
            copied.append(&mut entries);
        }
        Ok(copied)
    }

    /// A merge key has no quotes, so its bytes are compared and not its text.
    fn is_merge_key(&self, key: &yaml::Node) -> bool {
        self.text.get(key.span.clone()) == Some("<<")
    }

    /// Copies the entries of a merge key: a mapping, or a list of mappings.
    fn merged(&mut self, node: Shared, depth: usize) -> Result<Vec<(Node, Node)>, YamlProblem> {
        let Node { value, span } = self.node(node, depth)?;
        let maps = match value {
            Value::List(items) => items,
            value => vec![Node { value, span }],
        };
        let mut all = Vec::new();
        for Node { value, span } in maps {
            match value {
                Value::Map(mut entries) => all.append(&mut entries),
                Value::Null => {}
                Value::Bool(_)
                | Value::Whole(_)
                | Value::Number(_)
                | Value::Text(_)
                | Value::List(_) => {
                    let message = "a merge key needs a mapping or a list of mappings";
                    return Err(YamlProblem::new(span, message));
                }
            }
        }
        Ok(all)
    }
}

/// Returns the text of a key; `None` for lists and mappings, which the caller refuses as keys.
fn name(key: &Value) -> Option<String> {
    match key {
        Value::Null => Some("null".to_owned()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Whole(number) => Some(number.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Text(text) => Some(text.clone()),
        Value::List(_) | Value::Map(_) => None,
    }
}

/// Reads a number of the core schema of YAML.
fn number(written: &str) -> Value {
    let whole = match (written.strip_prefix("0x"), written.strip_prefix("0o")) {
        (Some(digits), _) => i64::from_str_radix(digits, 16),
        (_, Some(digits)) => i64::from_str_radix(digits, 8),
        (None, None) => written.parse(),
    };
    // YAML writes a dot before `inf` and `nan`, but Rust does not.
    let number = || written.parse().or_else(|_| written.replacen('.', "", 1).parse());
    whole.map_or_else(|_| Value::Number(number().unwrap_or(f64::NAN)), Value::Whole)
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
    fn merge_keys_add_missing_entries() {
        let check = |text: &str, expected: &[(&str, i64)]| {
            let root = read(&format!("a: &a {{ x: 1, y: 2 }}\nb: &b {{ y: 3, z: 4 }}\nc: {text}"));
            let Value::Map(mut entries) = root.unwrap().value else {
                panic!("no mapping");
            };
            let (_, Node { value: Value::Map(found), .. }) = entries.remove(2) else {
                panic!("no mapping");
            };
            let found = found.into_iter().map(|(key, node)| (key.value, node.value));
            let expected = expected.iter();
            let expected = expected.map(|(key, n)| (Value::Text((*key).into()), Value::Whole(*n)));
            assert!(found.eq(expected), "{text}");
        };
        check("{ <<: *a, y: 5 }", &[("y", 5), ("x", 1)]);
        check("{ <<: [*a, *b] }", &[("x", 1), ("y", 2), ("z", 4)]);
        check("{ <<: ~, y: 5 }", &[("y", 5)]);
        check("{ '<<': 5 }", &[("<<", 5)]);
    }

    #[test]
    fn aliases_are_copied_within_limits() {
        let check = |aliases: usize, lines: u32, expected: &str| {
            let line = |n: u32| {
                format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); aliases].join(", "))
            };
            let lines: String = (1..lines).map(line).collect();
            let message = read(&format!("a0: &a0 x\n{lines}")).unwrap_err().message;
            assert_eq!(message, expected);
        };
        check(100, 6, "the aliases copy too much");
        check(1, 20, "lists and mappings are nested more than 16 levels deep");
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
        let merge = "a merge key needs a mapping or a list of mappings";
        check("A: { <<: x }", &format!("r.yaml:1:10: error: {merge}"));
    }
}
