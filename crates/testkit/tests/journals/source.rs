//! The journal's types, parsed from their source: what can be written, and what can be left out.
//!
//! The source, and not values, is the input, so that a new variant or field is reported until a
//! golden journal has it. The parser knows only the syntax that these types use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Struct(Vec<Field>),
    Enum(Vec<Variant>),
}

/// A field under its serialized name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) of: String,
    pub(crate) may_be_absent: bool,
}

/// A variant under its serialized name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) name: String,
    pub(crate) holds: Holds,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holds {
    Nothing,
    One(String),
    Fields(Vec<Field>),
}

/// Returns all readable types of the core, by name.
pub(crate) fn shapes() -> BTreeMap<String, Shape> {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src"), &mut files);
    let mut shapes = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for block in text.split("\n#[derive(").skip(1) {
            let Some((derived, rest)) = block.split_once(")]\n") else { continue };
            if !derived.contains("Deserialize") {
                continue;
            }
            if let Some((name, shape)) = item(rest) {
                let before = shapes.insert(name.clone(), shape);
                // `Phase` is defined twice, for runs and for turns; neither is part of a record.
                assert!(before.is_none() || name == "Phase", "two types are called {name}");
            }
        }
    }
    shapes
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        match (is_test, path.is_dir()) {
            (true, _) => {}
            (false, true) => collect(&path, files),
            (false, false) => files.push(path),
        }
    }
}

/// Parses the item after its derives. A type with a custom form is only that form.
fn item(text: &str) -> Option<(String, Shape)> {
    let mut lines = text.lines();
    let mut head = lines.next()?;
    while head.starts_with("#[") || head.starts_with("//") {
        if ["untagged", "transparent", "try_from"].iter().any(|word| head.contains(word)) {
            return None;
        }
        head = lines.next()?;
    }
    let head = head.strip_prefix("pub ")?.strip_suffix(" {")?;
    let (kind, named) = head.split_once(' ')?;
    let (name, parameters) = named.split_once('<').unwrap_or((named, ""));
    let defaults = defaults(parameters.trim_end_matches('>'));
    let body = lines.take_while(|line| *line != "}");
    let body: Vec<String> = body.map(|line| with_defaults(line, &defaults)).collect();
    let body: Vec<&str> = body.iter().map(String::as_str).collect();
    match kind {
        "struct" => Some((name.to_owned(), Shape::Struct(fields(&body, "    pub ")))),
        "enum" => Some((name.to_owned(), Shape::Enum(variants(&body)))),
        _ => None,
    }
}

/// Returns the type parameters with their defaults, from `N: Ord = String, T = Value`. A record has
/// the defaults.
fn defaults(parameters: &str) -> BTreeMap<&str, &str> {
    let given = parameters.split(", ").filter_map(|parameter| parameter.split_once(" = "));
    given.map(|(name, default)| (name.split(':').next().unwrap_or(name), default)).collect()
}

/// Puts the default of each type parameter in its place.
fn with_defaults(line: &str, defaults: &BTreeMap<&str, &str>) -> String {
    let words = line.split_inclusive(|letter: char| !letter.is_alphanumeric());
    let replaced = words.flat_map(|word| {
        let name = word.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        let default = defaults.get(name).copied().unwrap_or(name);
        [default, &word[name.len()..]]
    });
    replaced.collect()
}

fn fields(lines: &[&str], prefix: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut attributes = String::new();
    for line in lines {
        let indented = prefix.trim_end_matches("pub ");
        if let Some(attribute) = line.strip_prefix(indented).filter(|rest| rest.starts_with("#[")) {
            attributes.push_str(attribute);
        } else if let Some(field) = line.strip_prefix(prefix).filter(|rest| !rest.starts_with('/'))
            && let Some((name, of)) = field.trim_end_matches(',').split_once(": ")
        {
            let attributes = std::mem::take(&mut attributes);
            if attributes.contains("serde(skip)") {
                continue;
            }
            let renamed =
                attributes.split("rename = \"").nth(1).and_then(|it| it.split('"').next());
            let name = renamed.unwrap_or(name).to_owned();
            let may_be_absent = attributes.contains("skip_serializing_if");
            fields.push(Field { name, of: of.to_owned(), may_be_absent });
        }
    }
    fields
}

fn variants(lines: &[&str]) -> Vec<Variant> {
    let mut variants = Vec::new();
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        let Some(line) = line.strip_prefix("    ") else { continue };
        if !line.starts_with(|first: char| first.is_ascii_uppercase()) {
            continue;
        }
        let line = line.trim_end_matches(',');
        let (name, holds) = if let Some(name) = line.strip_suffix(" {") {
            let body: Vec<&str> = lines.by_ref().take_while(|l| **l != "    },").copied().collect();
            (name, Holds::Fields(fields(&body, "        ")))
        } else if let Some((name, inside)) = on_one_line(line) {
            (name, Holds::Fields(fields(&split_fields(inside), "")))
        } else if let Some((name, held)) = line.split_once('(') {
            (name, Holds::One(held.trim_end_matches(')').to_owned()))
        } else {
            (line, Holds::Nothing)
        };
        variants.push(Variant { name: snake(name), holds });
    }
    variants
}

/// Splits `Name { field: Type }`, which rustfmt writes for short variants without comments.
fn on_one_line(line: &str) -> Option<(&str, &str)> {
    line.strip_suffix(" }")?.split_once(" { ")
}

fn split_fields(inside: &str) -> Vec<&str> {
    // Commas inside `<…>` separate type parameters, not fields.
    let mut depth = 0_i32;
    let fields = inside.split(|letter| {
        depth += i32::from(letter == '<') - i32::from(letter == '>');
        letter == ',' && depth == 0
    });
    fields.map(str::trim).collect()
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[test]
fn source_types_are_parsed() {
    let text = "#[serde(rename_all = \"snake_case\")]\npub enum Sample {\n    /// One.\n    \
        OneThing,\n    /// Two.\n    Two(Box<Other>),\n    /// Three.\n    Three {\n        \
        /// A field.\n        \
        #[serde(default, skip_serializing_if = \"Option::is_none\")]\n        \
        first: Option<u32>,\n        /// Another.\n        second: Vec<Other>,\n    },\n    \
        Four { a: u32, b: Map<u32, Other> },\n}\nrest";
    let field = |name: &str, of: &str, may_be_absent| Field {
        name: name.to_owned(),
        of: of.to_owned(),
        may_be_absent,
    };
    let three = vec![field("first", "Option<u32>", true), field("second", "Vec<Other>", false)];
    let four = vec![field("a", "u32", false), field("b", "Map<u32, Other>", false)];
    let variant = |name: &str, holds| Variant { name: name.to_owned(), holds };
    let expected = Shape::Enum(vec![
        variant("one_thing", Holds::Nothing),
        variant("two", Holds::One("Box<Other>".to_owned())),
        variant("three", Holds::Fields(three)),
        variant("four", Holds::Fields(four)),
    ]);
    assert_eq!(item(text), Some(("Sample".to_owned(), expected)));

    let generic = "pub struct Sample<N: Ord = String, T = Value> {\n    pub a: Option<N>,\n    \
        pub b: Pair<N, T>,\n}\n";
    let expected =
        vec![field("a", "Option<String>", false), field("b", "Pair<String, Value>", false)];
    assert_eq!(item(generic), Some(("Sample".to_owned(), Shape::Struct(expected))));
}
