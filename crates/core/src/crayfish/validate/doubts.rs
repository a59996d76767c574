//! Warnings: valid texts that the author probably meant differently.

use serde_json::Value;

use crate::crayfish::problem::Problem;
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::template::lookalikes;
use crate::text::push_pointer_token;

/// How many warnings are listed.
const MOST: usize = 100;

/// Returns texts of `env` and `steps` that look like an expression but are not, in document order.
pub fn doubts(document: &Value) -> Vec<Problem> {
    let mut found = Vec::new();
    // The stack is read from its end: `env` first, then the steps.
    let mut tasks: Vec<(String, &Value)> = ["output", "steps", "env"]
        .into_iter()
        .filter_map(|key| Some((format!("/{key}"), document.get(key)?)))
        .collect();
    while let Some((at, value)) = tasks.pop() {
        let mut inside: Vec<(String, &Value)> = Vec::new();
        match value {
            Value::String(text) => {
                let doubt = |message| Problem::new(&at, ProblemCode::BadPath, message);
                found.extend(lookalikes(text).into_iter().map(doubt));
            }
            Value::Array(items) => {
                let item = |(n, item)| (format!("{at}/{n}"), item);
                inside.extend(items.iter().enumerate().map(item));
            }
            Value::Object(fields) => {
                let fields = fields.iter().filter(|(key, _)| !SCHEMAS.contains(&key.as_str()));
                inside.extend(fields.map(|(key, value)| {
                    let mut at = at.clone();
                    push_pointer_token(&mut at, key);
                    (at, value)
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        tasks.extend(inside.into_iter().rev());
        // Warnings do not stop a run, so a long list of them helps no author.
        if found.len() >= MOST {
            break;
        }
    }
    found
}

/// Keys of schemas, in which expressions are not filled in.
const SCHEMAS: [&str; 3] = ["schema", "inputSchema", "outputSchema"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_template_is_checked_for_doubts() {
        let text = "{{$.vars.a}}";
        let document = json!({
            "name": text, "vars": { "a": text }, "env": { "A/B": text },
            "steps": [
                { "id": "a", "kind": "agent", "prompt": text, "schema": { "const": text },
                  "input": { "x": [text, "{{vars.a}}"] } },
                { "id": "b", "kind": "if", "then": [{ "id": "c", "shell": text }] },
            ],
        });
        let found: Vec<String> = doubts(&document).into_iter().map(|doubt| doubt.path).collect();
        let expected =
            ["/env/A~1B", "/steps/0/input/x/0", "/steps/0/prompt", "/steps/1/then/0/shell"];
        assert_eq!(found, expected);
    }

    #[test]
    fn doubt_suggests_the_probable_expression() {
        let check = |text: &str, expected: &[&str]| {
            let found = doubts(&json!({ "env": { "A": text } }));
            let messages = found.iter().map(|doubt| doubt.message.as_str());
            assert_eq!(messages.collect::<Vec<_>>(), expected, "{text}");
        };
        check("a {{$.vars.a}} b", &["`{{$.vars.a}}` is text here; did you mean `{{vars.a}}`?"]);
        check("{{vars[\"a\"]}}", &["`{{vars[\"a\"]}}` is text here; did you mean `{{vars.a}}`?"]);
        check("{{vars.}}", &["`{{vars.}}` is text here"]);
        for text in ["{{.Name}}", "{{name.first|json}}", "{{vars|json}}", "{{vars.a}}", "{{", "a"] {
            check(text, &[]);
        }
    }
}
