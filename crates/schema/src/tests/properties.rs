//! A bundle accepts the same values as its documents.

use proptest::prelude::*;

use super::*;

/// Generates a schema over the names `A`, `B` and `C` that goes into the value before it recurs.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer", "minimum": 1})),
        Just(json!(true)),
        Just(json!({"enum": [1, "x", null, []]})),
    ];
    let name = prop_oneof![Just("A"), Just("B"), Just("C.json"), Just("#")];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let name = name.clone().prop_map(|name| json!({"$ref": name}));
        let part = prop_oneof![inner.clone(), name];
        prop_oneof![
            part.clone().prop_map(|part| json!({"items": part})),
            (part.clone(), part).prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"anyOf": [a, b]})),
            inner.prop_map(|inner| json!({"not": inner})),
        ]
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(0)), Just(json!(1)), Just(json!("x")), Just(json!(null))];
    leaf.prop_recursive(4, 20, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            (inner.clone(), inner).prop_map(|(a, b)| json!({"a": a, "b": b})),
        ]
    })
}

/// Evaluates these few keywords as JSON Schema defines them.
fn holds(schema: &Value, value: &Value, root: &Value, shelf: &Value) -> bool {
    let Value::Object(map) = schema else { return schema == &json!(true) };
    map.iter().all(|(keyword, argument)| match (keyword.as_str(), value) {
        ("$ref", _) => match argument.as_str().unwrap() {
            "#" => holds(root, value, root, shelf),
            name => {
                let document = &shelf[name];
                holds(document, value, document, shelf)
            }
        },
        ("type", _) => match argument.as_str().unwrap() {
            "string" => value.is_string(),
            _ => value.is_i64(),
        },
        ("minimum", Value::Number(number)) => number.as_i64() >= argument.as_i64(),
        ("enum", _) => argument.as_array().unwrap().contains(value),
        ("items", Value::Array(items)) => {
            items.iter().all(|item| holds(argument, item, root, shelf))
        }
        ("properties", Value::Object(parts)) => {
            argument.as_object().unwrap().iter().all(|(key, schema)| {
                parts.get(key).is_none_or(|part| holds(schema, part, root, shelf))
            })
        }
        ("anyOf", _) => {
            argument.as_array().unwrap().iter().any(|schema| holds(schema, value, root, shelf))
        }
        ("not", _) => !holds(argument, value, root, shelf),
        ("minimum" | "items" | "properties", _) => true,
        (other, _) => panic!("{other}"),
    })
}

proptest! {
    #[test]
    fn a_bundle_holds_for_the_same_values(
        source in schemas(), a in schemas(), b in schemas(), c in schemas(), value in values(),
    ) {
        let shelf = json!({"A": a, "B": b, "C.json": c});
        let schema = sound(&source, shelf.clone());
        let expected = holds(&source, &value, &source, &shelf);
        prop_assert_eq!(schema.errors(&value).is_empty(), expected);
        let again = sound(schema.bundled(), json!({}));
        prop_assert_eq!(again.errors(&value).is_empty(), expected);
    }
}
