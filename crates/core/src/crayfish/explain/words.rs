//! Short descriptions of conditions, templates and schemas.

use serde_json::Value;

use crate::crayfish::condition::{Condition, Test};
use crate::crayfish::template::{Part, Template};

/// How many names are listed; the rest is only counted.
const NAMED: usize = 12;
/// How many levels of a schema are described.
const LEVELS: usize = 2;
/// How many fields of an object, or values of an enum, are listed.
const FIELDS: usize = 8;
/// Characters of an author's text on one line, before the caller fits it to its width.
const LONGEST: usize = 200;

/// Returns `vars a, b, c`, or `None` without names.
pub(super) fn list<'a>(word: &str, names: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(NAMED);
    (!names.is_empty()).then(|| format!("{word} {}{more}", names.join(", ")))
}

/// Returns a template as its author wrote it.
pub(super) fn source(template: &Template) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Value(path) => format!("{{{{{}}}}}", path.expression()),
    };
    template.parts().iter().map(part).collect()
}

/// Returns the first line, with an ellipsis if it is not the whole text.
pub(super) fn first_line(text: &str) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default().trim_end();
    let cut: String = line.chars().take(LONGEST).collect();
    // Compared with the whole text, because further lines are left out, too.
    if cut.len() == text.len() { cut } else { format!("{cut} …") }
}

/// Returns a condition as `$.vars.mode = "daily"`.
pub(super) fn condition(condition: &Condition) -> String {
    let path = &condition.path;
    match &condition.test {
        Test::Exists => format!("{path} exists"),
        Test::Equals(value) => format!("{path} = {}", literal(value)),
        Test::Differs(value) => format!("{path} ≠ {}", literal(value)),
        Test::Above(bound) => format!("{path} > {bound}"),
        Test::Below(bound) => format!("{path} < {bound}"),
    }
}

fn literal(value: &Value) -> String {
    first_line(&value.to_string())
}

/// Describes a schema: `object {id, score?}`, `array of string`, `"a" | "b"`, `Tweets`.
pub(super) fn gist(schema: &Value) -> String {
    within(schema, LEVELS)
}

fn within(schema: &Value, levels: usize) -> String {
    let Value::Object(fields) = schema else {
        return if *schema == Value::Bool(false) { "nothing" } else { "any JSON" }.to_owned();
    };
    if let Some(Value::String(name)) = fields.get("$ref") {
        return name.trim_start_matches("#/$defs/").trim_end_matches(".json").to_owned();
    }
    if let Some(value) = fields.get("const") {
        return literal(value);
    }
    if let Some(Value::Array(values)) = fields.get("enum") {
        let some: Vec<String> = values.iter().take(FIELDS).map(literal).collect();
        let more = if values.len() > FIELDS { " | …" } else { "" };
        return some.join(" | ") + more;
    }
    match fields.get("type") {
        Some(Value::String(kind)) if kind == "object" => object(fields, levels),
        Some(Value::String(kind)) if kind == "array" => match fields.get("items") {
            // The line shows only the outline of a schema, which may be deep.
            Some(items) if levels > 0 => format!("array of {}", within(items, levels - 1)),
            Some(_) | None => "array".to_owned(),
        },
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | ")
        }
        Some(_) | None if fields.contains_key("properties") => object(fields, levels),
        Some(_) | None if fields.is_empty() => "any JSON".to_owned(),
        Some(_) | None => "JSON of its schema".to_owned(),
    }
}

/// Lists the fields of an object; an optional field has a question mark.
fn object(schema: &serde_json::Map<String, Value>, levels: usize) -> String {
    let Some(Value::Object(properties)) = schema.get("properties").filter(|_| levels > 0) else {
        return "object".to_owned();
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));
    let field = |(name, schema): (&String, &Value)| {
        let mark = if is_required(name) { "" } else { "?" };
        match within(schema, levels - 1) {
            any if any == "any JSON" => format!("{name}{mark}"),
            kind => format!("{name}{mark}: {kind}"),
        }
    };
    let mut fields: Vec<String> = properties.iter().take(FIELDS).map(field).collect();
    if properties.len() > FIELDS {
        fields.push("…".to_owned());
    }
    format!("object {{{}}}", fields.join(", "))
}
