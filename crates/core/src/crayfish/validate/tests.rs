//! The rules of the language as tables, by topic.

use serde_json::{Value, json};

use super::*;
use crate::crayfish::document::{StepIndex, StepKind};

mod accepted;
mod codes;
mod expressions;
mod hostile;
mod shapes;
mod sources;

/// Pointers and messages.
type Rows<'a> = [(&'a str, &'a str)];

/// Checks that a document has exactly these problems, in this order.
fn check(document: &Value, expected: &Rows<'_>) {
    let problems = Document::parse(document).err().unwrap_or_default();
    assert_eq!(without_codes(&problems), expected, "{document}");
}

/// Returns problems without their codes, which `codes` checks.
fn without_codes(problems: &[Problem]) -> Vec<(&str, &str)> {
    problems.iter().map(|problem| (problem.path.as_str(), problem.message.as_str())).collect()
}

/// Checks a document of these steps, with pointers below `/steps`.
fn check_steps(steps: &Value, expected: &Rows<'_>) {
    below("/steps", expected, &|expected| check(&json!({ "steps": steps }), expected));
}

/// Checks one step without its id, with pointers below the step; an agent step `a` follows it.
fn check_step(mut step: Value, expected: &Rows<'_>) {
    step["id"] = "s".into();
    below("/0", expected, &|expected| check_steps(&json!([step, agent("a")]), expected));
}

/// Calls `check` with pointers that begin further out.
fn below(prefix: &str, expected: &Rows<'_>, check: &dyn Fn(&Rows<'_>)) {
    let pointers: Vec<String> =
        expected.iter().map(|(pointer, _)| format!("{prefix}{pointer}")).collect();
    let messages = expected.iter().map(|(_, message)| *message);
    check(&pointers.iter().map(String::as_str).zip(messages).collect::<Vec<_>>());
}

fn exec(id: &str) -> Value {
    json!({ "id": id, "kind": "exec", "shell": "true" })
}

fn agent(id: &str) -> Value {
    json!({ "id": id, "kind": "agent", "prompt": "p", "schema": {} })
}

fn each(id: &str, list: &str, item: &str, body: &Value) -> Value {
    json!({ "id": id, "kind": "forEach", "listPath": list, "itemVar": item, "body": body })
}
