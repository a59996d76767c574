//! Schemas and values that exceed the limits, all on a stack of 2 MiB.

use super::*;

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    thread.spawn(work).unwrap().join().unwrap();
}

fn nested(levels: usize, inside: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(inside, |inner, _| wrap(inner))
}

/// Returns `{"a": {"a": …}}`.
fn deep(levels: usize, inside: Value) -> Value {
    // `json!` would copy everything inside at every level.
    nested(levels, inside, |inner| Value::Object([("a".to_owned(), inner)].into_iter().collect()))
}

// proves: S41
#[test]
fn schema_depth_is_limited() {
    on_a_small_stack(|| {
        let wraps: [fn(Value) -> Value; 7] = [
            |inner| json!({"properties": {"a": inner}, "additionalProperties": false, "required": ["a"]}),
            |inner| json!({"allOf": [inner]}),
            |inner| json!({"anyOf": [inner, {"type": "null"}]}),
            |inner| json!({"allOf": [inner], "unevaluatedProperties": false}),
            |inner| json!({"if": {"not": inner}, "then": {"required": ["a"]}}),
            |inner| json!({"patternProperties": {"^(?!b)a": inner}}),
            |inner| json!({"prefixItems": [inner], "contains": true}),
        ];
        let value = deep(600, json!(1));
        for wrap in wraps {
            let schema = nested(84, json!({"type": "string"}), wrap);
            let schema = sound(&schema, json!({}));
            drop(schema.errors(&value));
            let schema = nested(300, json!({"type": "string"}), wrap);
            let faults = compile(&schema, json!({})).err().unwrap();
            let expected = format!("levels, and {NESTING_MAX} are the most");
            assert!(faults[0].message.ends_with(&expected), "{faults:?}");
        }
    });
}

#[test]
fn the_deepest_bundle_is_a_schema_again() {
    on_a_small_stack(|| {
        let deep =
            |pairs| nested(pairs, json!({"type": "string"}), |inner| json!({"allOf": [inner]}));
        let most = NESTING_MAX / 2 - 1;
        check(
            &json!({"items": {"$ref": "A"}}),
            json!({"A": deep(most - 1)}),
            &[json!(["x"])],
            &[json!([1])],
        );
        check(&json!({"$ref": "A"}), json!({"A": deep(most)}), &[json!("x")], &[json!(1)]);
        let message = "in `A`: the schema has 257 levels, and 256 are the most";
        refused(
            &json!({"items": {"$ref": "A"}}),
            json!({"A": deep(most)}),
            &[("/items/$ref", message)],
        );
    });
}

#[test]
fn a_deep_value_is_checked_to_its_end() {
    on_a_small_stack(|| {
        let closed = json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": false});
        let schemas = [
            (json!({"properties": {"a": {"$ref": "#"}}, "not": {"required": ["bad"]}}), 2000),
            (json!({"anyOf": [{"type": "string"}, closed]}), 300),
            (json!({"properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": false}), 2000),
        ];
        for (schema, levels) in schemas {
            let schema = sound(&schema, json!({}));
            assert_eq!(schema.errors(&deep(2000, json!({}))), []);
            let faults = schema.errors(&deep(levels, json!({"bad": 1})));
            assert_eq!(faults.len(), 1);
            assert!(faults[0].path.len() < 410 && faults[0].message.len() < 1000, "{faults:?}");
        }
    });
}

#[test]
fn too_deep_value_is_a_fault() {
    on_a_small_stack(|| {
        let inner = json!({"properties": {"a": {"$ref": "#"}}});
        let schema = sound(&nested(60, inner, |inner| json!({"allOf": [inner]})), json!({}));
        let value = deep(2000, json!(1));
        let message = "the value has 2000 levels, more than this schema can be checked on";
        assert_eq!(schema.errors(&value), [SchemaFault::new("", FaultKind::Value, message)]);
    });
}

/// Returns definitions that each refer to the next.
fn chain(length: usize, step: impl Fn(Value) -> Value) -> Value {
    let next = |index: usize| step(json!({"$ref": format!("#/$defs/{}", index + 1)}));
    let mut defs: serde_json::Map<_, _> =
        (0..length).map(|index| (index.to_string(), next(index))).collect();
    defs.insert(length.to_string(), json!({"type": "string"}));
    json!({"$ref": "#/$defs/0", "$defs": defs})
}

#[test]
fn a_long_way_through_references_is_bounded() {
    on_a_small_stack(|| {
        let all = |next: Value| json!({"allOf": [next]});
        let schema = sound(&chain(400, all), json!({}));
        assert_eq!((schema.errors(&json!("x")).len(), schema.errors(&json!(1)).len()), (0, 1));
        let message = "one value leads through 20002 schemas, and 1000 are the most";
        refused(&chain(10_000, all), json!({}), &[("", message)]);
        let part = sound(&chain(5000, |next| json!({"properties": {"a": next}})), json!({}));
        let value = deep(2000, json!(1));
        assert_eq!(part.errors(&value), []);
    });
}

// proves: S41
#[test]
fn many_ways_to_the_same_schema_are_refused() {
    let twice = |next: Value| json!({"allOf": [next.clone(), next]});
    let message = "one value is checked against more than 1000000 schemas";
    refused(&chain(60, twice), json!({}), &[("", message)]);
}

// proves: S41
#[test]
fn a_regular_expression_never_hangs() {
    let check = |pattern: &str, text: &str| {
        let schema = sound(&json!({"pattern": pattern}), json!({}));
        // Exponential work would not end before the time limit of the test itself.
        assert_eq!(schema.errors(&json!(text)).len(), 1);
    };
    let text = format!("{}!", "a".repeat(50_000));
    check("^(a+)+$", &text);
    check("^(a|a)*$", &text);
    check(r"^(a+)+\1b$", &text);
    check("^(?=(a+)+b)", &text);
    check("(x+x+)+y(?=z)", &"x".repeat(50_000));
    let large = json!({"pattern": "(((a{1000}){1000}){1000}){1000}"});
    assert_eq!(compile(&large, json!({})).err().unwrap()[0].path, "/pattern");
}
