//! Finds the schemas of a document even if the document has mistakes, so that Raymond reports these
//! mistakes together with the mistakes in the schemas.

use serde_json::Value;

use crate::text::push_pointer_token;

/// Returns every schema with its pointer, in document order.
pub fn schemas(document: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let mut tasks = vec![(String::new(), document)];
    while let Some((at, value)) = tasks.pop() {
        found.extend(direct(value).into_iter().filter_map(|way| {
            let pointer = format!("{at}{way}");
            Some((pointer, value.pointer(&way)?))
        }));
        // Reversed, because the stack is popped from its end.
        let lists = ["body", "else", "then", "steps"];
        for list in lists {
            let steps = value.get(list).and_then(Value::as_array).into_iter().flatten();
            let steps = steps.enumerate().map(|(n, step)| (format!("{at}/{list}/{n}"), step));
            let mut steps: Vec<(String, &Value)> = steps.collect();
            steps.reverse();
            tasks.extend(steps);
        }
    }
    found
}

/// Returns the pointers below a step that can lead to a schema.
fn direct(step: &Value) -> Vec<String> {
    let mut ways: Vec<String> =
        ["/schema", "/io/inputSchema", "/io/outputSchema"].map(str::to_owned).to_vec();
    for list in ["in", "out"] {
        let contracts = step.pointer(&format!("/io/{list}")).and_then(Value::as_object);
        ways.extend(contracts.into_iter().flatten().map(|(name, _)| {
            let mut way = format!("/io/{list}");
            push_pointer_token(&mut way, name);
            way + "/schema"
        }));
    }
    ways
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_found_in_every_step_list() {
        let document = json!({ "steps": [
            { "surprise": 1, "schema": 1, "then": [{ "io": { "in": { "a/b": { "schema": 2 } } } }] },
            { "body": [{ "io": { "inputSchema": 3 } }], "io": 1 },
        ] });
        let found: Vec<(String, &Value)> = schemas(&document);
        let expected = [
            ("/steps/0/schema", json!(1)),
            ("/steps/0/then/0/io/in/a~1b/schema", json!(2)),
            ("/steps/1/body/0/io/inputSchema", json!(3)),
        ];
        let expected: Vec<(String, &Value)> =
            expected.iter().map(|(at, value)| ((*at).to_owned(), value)).collect();
        assert_eq!(found, expected);
    }
}
