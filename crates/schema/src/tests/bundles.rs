//! The content of bundles.

use super::*;

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "rows are literals")]
fn bundled(source: Value, documents: Value, expected: Value) {
    assert_eq!(sound(&source, documents).bundled(), &expected);
}

#[test]
fn a_schema_without_names_is_its_own_bundle() {
    let source =
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#"}}}, "title": "t"});
    bundled(source.clone(), json!({}), source);
    bundled(json!(true), json!({}), json!(true));
}

#[test]
fn named_document_becomes_one_definition() {
    bundled(
        json!({"properties": {"a": {"$ref": "A"}, "b": {"$ref": "A.json"}, "c": {"$ref": "A"}}}),
        json!({"A.json": {"type": "string"}}),
        json!({
            "properties": {
                "a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}, "c": {"$ref": "#/$defs/A"},
            },
            "$defs": {"A": {"type": "string"}},
        }),
    );
}

#[test]
fn references_of_a_named_document_stay_in_it() {
    bundled(
        json!({"items": {"$ref": "A"}}),
        json!({
            "A": {
                "$id": "https://example.com/A",
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$defs": {"x y": {"$anchor": "x"}},
                "properties": {"a": {"$ref": "#/$defs/x%20y"}, "b": {"$ref": "#x"}, "c": {"$ref": "#"}},
            },
        }),
        json!({
            "items": {"$ref": "#/$defs/A"},
            "$defs": {"A": {
                "$defs": {"x y": {}},
                "properties": {
                    "a": {"$ref": "#/$defs/A/$defs/x%20y"},
                    "b": {"$ref": "#/$defs/A/$defs/x%20y"},
                    "c": {"$ref": "#/$defs/A"},
                },
            }},
        }),
    );
}

#[test]
fn definitions_are_kept_where_the_draft_keeps_them() {
    let seven = "http://json-schema.org/draft-07/schema#";
    bundled(
        json!({"$schema": "http://json-schema.org/draft-07/schema", "items": {"$ref": "A"}}),
        json!({"A": {}}),
        json!({"$schema": seven, "items": {"$ref": "#/definitions/A"}, "definitions": {"A": {}}}),
    );
}

#[test]
fn names_that_are_taken_get_a_number() {
    bundled(
        json!({
            "items": {"$ref": "A"}, "contains": {"$ref": "A.json"}, "not": {"$ref": "#/$defs/A"},
            "$defs": {"A": {"const": 0}},
        }),
        json!({"A": {"const": 1}, "A.json": {"const": 2}}),
        json!({
            "items": {"$ref": "#/$defs/A_2"}, "contains": {"$ref": "#/$defs/A_3"},
            "not": {"$ref": "#/$defs/A"},
            "$defs": {"A": {"const": 0}, "A_2": {"const": 1}, "A_3": {"const": 2}},
        }),
    );
}

#[test]
fn odd_names_are_escaped() {
    bundled(
        json!({"items": {"$ref": "a ~é"}}),
        json!({"a ~é": {}}),
        json!({"items": {"$ref": "#/$defs/a%20~0%C3%A9"}, "$defs": {"a ~é": {}}}),
    );
    let documents = json!({"a ~é": {"type": "string"}});
    check(&json!({"items": {"$ref": "a ~é"}}), documents, &[json!(["x"])], &[json!([1])]);
}

#[test]
fn nothing_but_a_name_is_the_document_itself() {
    let seven = "http://json-schema.org/draft-07/schema#";
    let list = json!({"properties": {"next": {"$ref": "List"}, "of": {"$ref": "Of"}}});
    bundled(
        json!({"$ref": "Alias"}),
        json!({"Alias": {"$ref": "List.json"}, "List.json": list, "Of": {"$ref": "List"}}),
        json!({
            "properties": {"next": {"$ref": "#"}, "of": {"$ref": "#/$defs/Of"}},
            "$defs": {"Of": {"$ref": "#"}},
        }),
    );
    bundled(
        json!({"$ref": "A"}),
        json!({"A": {"$schema": seven, "type": "null"}}),
        json!({"$schema": seven, "type": "null"}),
    );
    bundled(
        json!({"$schema": seven, "$ref": "A"}),
        json!({"A": {"type": "null"}}),
        json!({"$schema": seven, "type": "null"}),
    );
}

#[test]
fn reference_target_is_a_schema() {
    let source = json!({
        "$ref": "#/components/schemas/a",
        "components": {"schemas": {"a": {"items": {"$ref": "B"}}}},
    });
    check(&source, json!({"B": {"type": "string"}}), &[json!(["x"])], &[json!([1])]);
}

#[test]
fn old_reference_hides_its_siblings() {
    let source = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "A", "minLength": 5, "allOf": [{"$ref": "#"}]}},
    });
    check(&source, json!({"A": {"type": "string"}}), &[json!({"a": "x"})], &[json!({"a": 1})]);
    let root = json!({"$schema": source["$schema"], "$ref": "A", "title": "hidden"});
    check(&root, json!({"A": {"type": "string"}}), &[json!("x")], &[json!(1)]);
    let new = json!({"properties": {"a": {"$ref": "A", "minLength": 5}}});
    let documents = json!({"A": {"type": "string"}});
    check(&new, documents, &[json!({"a": "long enough"})], &[json!({"a": "x"}), json!({"a": 1})]);
}
