//! Documents that are large, deep or random.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::reading;
use crate::crayfish::reading::tests::any_json;

/// Returns steps nested this many levels deep.
fn nested(levels: usize) -> Value {
    let mut text = String::from("{\"steps\":[");
    for level in 1..levels {
        let cond = r#"{"op":"exists","path":"$.vars.x"}"#;
        write!(text, r#"{{"id":"s{level}","kind":"if","cond":{cond},"then":["#).unwrap();
    }
    text.push_str(r#"{"id":"last","kind":"exec","shell":"x"}"#);
    text.push_str(&"]}".repeat(levels));
    reading::read_text(&text).unwrap()
}

#[test]
fn step_nesting_is_limited_to_five_hundred() {
    for levels in [1, 400, NESTING] {
        let document = Document::parse(&nested(levels)).unwrap();
        assert_eq!(document.steps().len(), levels);
        let last = document.pointer(document.find("last").unwrap());
        assert_eq!(last, format!("/steps/0{}", "/then/0".repeat(levels - 1)));
    }
    let deepest = format!("/steps/0{}/then", "/then/0".repeat(NESTING - 1));
    check(&nested(NESTING + 1), &[(&deepest, "steps are nested more than 500 levels deep")]);
}

#[test]
fn the_deepest_step_may_have_a_deep_schema() {
    let mut document = nested(NESTING);
    let mut schema = json!({ "type": "object" });
    for _ in 0..90 {
        schema = json!({ "properties": { "a": schema } });
    }
    let last = format!("/steps/0{}", "/then/0".repeat(NESTING - 1));
    document.pointer_mut(&last).unwrap()["io"] =
        json!({ "mode": "stream", "outputSchema": schema });
    let again = reading::read_text(&document.to_string()).unwrap();
    assert_eq!(Document::parse(&again).map(|document| document.steps().len()), Ok(NESTING));
}

#[test]
fn a_hundred_thousand_steps_are_valid() {
    let steps: Vec<Value> = (0..100_000).map(|n| exec(&format!("s{n}"))).collect();
    let document = Document::parse(&json!({ "steps": steps })).unwrap();
    assert_eq!((document.steps().len(), document.top().len()), (100_000, 100_000));
    assert_eq!(
        document.find("s99999").map(|index| document.pointer(index)),
        Some("/steps/99999".into())
    );
}

// proves: S42
#[test]
fn more_than_a_million_steps_are_not() {
    let steps = vec![Value::Null; STEPS + 1];
    let problems = Document::parse(&json!({ "steps": steps })).unwrap_err();
    assert_eq!(problems.len(), 1_001);
    assert_eq!(
        problems[0],
        Problem::new("/steps", ProblemCode::TooManySteps, "there are more than 1000000 steps")
    );
    assert_eq!(
        problems[1],
        Problem::new("/steps/0", ProblemCode::WrongType, "a step is an object, not null")
    );
    assert_eq!(problems[1_000], Problem::more(999_001));
}

#[test]
fn first_thousand_problems_are_in_document_order() {
    let steps: Vec<Value> = (0..3_000)
        .map(|n| {
            let io = json!({ "mode": "stream", "inputFrom": "nobody" });
            json!({ "id": format!("s{n}"), "kind": "exec", "shell": "x", "io": io, "x": 1 })
        })
        .collect();
    let problems = Document::parse(&json!({ "steps": steps })).unwrap_err();
    assert_eq!(problems[0].path, "/steps/0/x");
    assert_eq!(problems[1_000], Problem::more(5000));
}

#[test]
fn late_problems_are_reported_in_document_order() {
    let reader = json!({ "mode": "stream", "inputFrom": "nobody" });
    check_steps(
        &json!([
            { "id": "a", "kind": "exec", "shell": "x", "io": reader },
            { "id": "b", "kind": "exec" },
        ]),
        &[
            ("/0/io/inputFrom", "there is no step `nobody`"),
            ("/1", "an exec step needs `shell` or `run`"),
        ],
    );
}

/// Generates a step with valid keys, whose values are valid or random.
fn any_step() -> impl Strategy<Value = Value> {
    let names = || prop::sample::select(vec!["a", "b", "c", "d", "e f"]);
    let text = prop::sample::select(vec![
        "{{vars.x}}",
        "{{locals.i}}",
        "{{results.a.json}}",
        "{{",
        "$.vars.x",
        "$.locals.i",
        "$.results.a",
        "exists",
        "eq",
        "i",
        "a",
        "file",
        "stream",
        "..",
        "\0",
    ]);
    let value = prop_oneof![
        4 => text.prop_map(Value::from),
        2 => (0..7_i32).prop_map(Value::from),
        1 => Just(json!({ "op": "exists", "path": "$.vars.x" })),
        1 => Just(json!({ "mode": "stream", "inputFrom": "a" })),
        1 => Just(json!({ "in": { "f": { "path": "x" } } })),
        1 => Just(json!({ "kind": "cmd", "cmd": "x", "args": [] })),
        1 => any_json(),
    ];
    let all: Vec<&str> = [keys::EXEC, keys::AGENT, keys::FOR_EACH, keys::WHILE, keys::IF].concat();
    let keys = prop::sample::select(all);
    let extra = prop::collection::btree_map(keys, value, 0..3);
    let leaf = (names(), 0..5_usize, extra).prop_map(|(id, kind, extra)| {
        let exists = json!({ "op": "exists", "path": "$.vars.x" });
        let mut step = match kind {
            0 => json!({ "kind": "exec", "shell": "x" }),
            1 => json!({ "kind": "agent", "prompt": "p", "schema": {} }),
            2 => json!({ "kind": "if", "cond": exists, "then": [] }),
            3 => json!({ "kind": "forEach", "listPath": "$.vars.x", "itemVar": "i", "body": [] }),
            _ => json!({ "kind": "while", "until": exists, "maxIters": 2, "body": [] }),
        };
        step["id"] = id.into();
        for (key, value) in extra {
            step[key] = value;
        }
        step
    });
    leaf.prop_recursive(4, 12, 3, move |inner| {
        (inner.clone(), prop::collection::vec(inner, 0..3)).prop_map(|(mut step, children)| {
            match step["kind"].as_str() {
                Some("if") => step["then"] = children.into(),
                Some("forEach" | "while") => step["body"] = children.into(),
                _ => {}
            }
            step
        })
    })
}

proptest! {
    // proves: S42
    #[test]
    fn any_json_is_checked(value in any_json()) {
        if let Err(problems) = Document::parse(&value) {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn every_problem_points_into_its_document(
        steps in prop::collection::vec(any_step(), 0..5),
    ) {
        let value = json!({ "steps": steps });
        match Document::parse(&value) {
            Ok(document) => {
                let ids: BTreeSet<String> =
                    document.steps().iter().map(|step| step.id.to_string()).collect();
                prop_assert_eq!(ids.len(), document.steps().len());
                for (number, step) in document.steps().iter().enumerate() {
                    let index = document.find(step.id.as_str()).unwrap();
                    prop_assert_eq!(index.number(), number);
                    let there = value.pointer(&document.pointer(index)).unwrap();
                    prop_assert_eq!(there["id"].as_str(), Some(step.id.as_str()));
                }
            }
            Err(problems) => {
                for problem in problems {
                    prop_assert!(value.pointer(&problem.path).is_some(), "{}", problem);
                }
            }
        }
    }
}
