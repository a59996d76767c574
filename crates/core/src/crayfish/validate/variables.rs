//! The variables that a document declares in `vars`, or names in a text such as `{{vars.x}}` or
//! `$.vars.x`.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns the names of the variables that a document declares or uses. A text that only looks like
/// a use counts, too: a doubtful name must not stop a run.
pub fn variables(document: &Value) -> BTreeSet<&str> {
    let declared = document.get("vars").and_then(Value::as_object);
    let mut names: BTreeSet<&str> =
        declared.into_iter().flat_map(|vars| vars.keys().map(String::as_str)).collect();
    let mut values: Vec<&Value> =
        ["env", "steps", "output"].iter().filter_map(|at| document.get(at)).collect();
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => names.extend(text.split("vars.").skip(1).map(name)),
            Value::Array(items) => values.extend(items),
            Value::Object(fields) => values.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    names
}

/// Returns the name at the start of a text.
fn name(text: &str) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn declared_and_named_variables_are_known() {
        let document = json!({
            "vars": { "a": 1 },
            "env": { "X": "{{ vars.b }}" },
            "steps": [{ "id": "s", "input": ["{{vars.c-1.d}}", { "y": "$.vars.e[0]" }] }],
        });
        let expected = BTreeSet::from(["a", "b", "c-1", "e"]);
        assert_eq!(variables(&document), expected);
    }
}
