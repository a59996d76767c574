//! The rules of the crate as tables.

mod bundles;
mod hostile;
mod properties;

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

/// A library in memory.
struct Shelf(BTreeMap<String, Value>);

impl Shelf {
    fn of(documents: Value) -> Self {
        let Value::Object(documents) = documents else { panic!("documents by name") };
        Self(documents.into_iter().collect())
    }
}

impl Library for Shelf {
    fn find(&self, name: &str) -> Result<Option<Value>, String> {
        if name == "Broken" {
            return Err("it is not JSON".to_owned());
        }
        let found = self.0.get(name).or_else(|| self.0.get(&format!("{name}.json")));
        Ok(found.cloned())
    }
}

fn compile(source: &Value, documents: Value) -> Result<Schema, Vec<SchemaFault>> {
    Schema::compile(source, &Shelf::of(documents))
}

#[track_caller]
fn sound(source: &Value, documents: Value) -> Schema {
    compile(source, documents).unwrap_or_else(|faults| panic!("{source}: {faults:?}"))
}

#[track_caller]
fn refused(source: &Value, documents: Value, expected: &[(&str, &str)]) {
    let faults = compile(source, documents).err().unwrap_or_default();
    let found: Vec<_> = faults.iter().map(|f| (f.path.as_str(), f.message.as_str())).collect();
    assert_eq!(found, expected, "{source}");
}

/// Checks valid and invalid values, also against the bundle alone.
#[track_caller]
fn check(source: &Value, documents: Value, good: &[Value], bad: &[Value]) {
    let schema = sound(source, documents);
    let again = sound(schema.bundled(), json!({}));
    assert_eq!(again.bundled(), schema.bundled());
    for value in good {
        assert_eq!(schema.errors(value), [], "{source} {value}");
        assert_eq!(again.errors(value), [], "{source} {value}");
    }
    for value in bad {
        let faults = schema.errors(value);
        assert_ne!(faults, [], "{source} {value}");
        assert_eq!(again.errors(value), faults);
    }
}

#[test]
fn draft_is_2020_12_by_default() {
    let pair = json!(["x", 1]);
    let list = json!([{"type": "string"}, {"type": "integer"}]);
    let draft = |uri: &str, keyword: &str| json!({"$schema": uri, keyword: list});
    let old = [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
    ];
    for uri in old {
        check(&draft(uri, "items"), json!({}), std::slice::from_ref(&pair), &[json!([1, 1])]);
    }
    let new = "https://json-schema.org/draft/2020-12/schema";
    check(&draft(new, "prefixItems"), json!({}), std::slice::from_ref(&pair), &[json!([1, 1])]);
    check(&json!({"prefixItems": list}), json!({}), &[pair], &[json!([1, 1])]);
    let exclusive = json!({"$schema": old[0], "minimum": 1, "exclusiveMinimum": true});
    check(&exclusive, json!({}), &[json!(2)], &[json!(1)]);
    refused(
        &json!({"$schema": "https://example.com/own"}),
        json!({}),
        &[(
            "/$schema",
            "`$schema` https://example.com/own is not a draft that is known here (draft-04, \
             draft-06, draft-07, 2019-09, 2020-12)",
        )],
    );
    refused(&json!({"$schema": 7}), json!({}), &[("/$schema", "`$schema` is not a string")]);
}

#[test]
fn only_booleans_and_objects_are_schemas() {
    check(&json!(true), json!({}), &[json!(null)], &[]);
    check(&json!(false), json!({}), &[], &[json!(null)]);
    check(&json!({"$ref": "No"}), json!({"No": false}), &[], &[json!(1)]);
    refused(&json!([]), json!({}), &[("", "a schema is an object or a boolean")]);
    let message = "`A` is neither an object nor a boolean";
    refused(&json!({"items": {"$ref": "A"}}), json!({"A": []}), &[("/items/$ref", message)]);
}

#[test]
fn invalid_schema_reports_every_fault() {
    refused(
        &json!({"type": "strin", "properties": {"a": {"minimum": "x"}}}),
        json!({}),
        &[
            ("/properties/a/minimum", r#""x" is not of type "number""#),
            (
                "/type",
                r#""strin" is not valid under any of the schemas listed in the 'anyOf' keyword; nearest: the value is not one of "array", "boolean", "integer", "null", "number", "object" or "string""#,
            ),
        ],
    );
    let broken = json!({"items": {"pattern": "("}});
    let faults = compile(&broken, json!({})).err().unwrap();
    assert_eq!(faults[0].path, "/items/pattern");
    let faults = compile(&json!({"items": {"$ref": "A"}}), json!({"A": broken})).err().unwrap();
    assert_eq!(faults[0].path, "/items/$ref");
    assert!(faults[0].message.starts_with("in `A` at /items/pattern: "), "{faults:?}");
}

#[test]
fn internal_references_resolve_pointers_and_anchors() {
    let defs = json!({"a": {"type": "string"}, "b c": {"$anchor": "there", "type": "string"}});
    let both = |reference: &str| {
        let source = json!({"properties": {"x": {"$ref": reference}}, "$defs": defs});
        check(&source, json!({}), &[json!({"x": "s"})], &[json!({"x": 1})]);
        // The same fault in a named document.
        let outer = json!({"items": {"$ref": "A"}});
        check(&outer, json!({"A": source}), &[json!([{"x": "s"}])], &[json!([{"x": 1}])]);
    };
    both("#/$defs/a");
    both("#/$defs/b%20c");
    both("#there");
    let tree = json!({"properties": {"x": {"$ref": "#"}}, "additionalProperties": false});
    check(&tree, json!({}), &[json!({"x": {"x": {}}})], &[json!({"x": {"y": 1}})]);
}

// proves: S40
#[test]
fn a_dangling_reference_is_a_fault() {
    let check = |reference: &str, message: &str| {
        let path = "/properties/x/$ref";
        let source = json!({"properties": {"x": {"$ref": reference}}, "enum": [{}], "title": "t"});
        refused(&source, json!({}), &[(path, message)]);
        let inside = format!("in `A` at {path}: {message}");
        refused(&json!({"not": {"$ref": "A"}}), json!({"A": source}), &[("/not/$ref", &inside)]);
    };
    check("#/$defs/a", "there is nothing at /$defs/a");
    check("#there", "there is no anchor `there`");
    check("#/title", "there is no schema at /title");
    check("#/enum/0", "the value at /enum/0 is data, not a schema");
    check("Gone", "there is no schema named `Gone`");
    check("Broken", "could not read the schema `Broken`: it is not JSON");
    check("a/b", "`a/b` is a path: a schema is named by its file name alone");
    let unused = json!({"$defs": {"a": {"$ref": "#/nothing"}}});
    refused(&unused, json!({}), &[("/$defs/a/$ref", "there is nothing at /nothing")]);
}

#[test]
fn several_faults_are_reported_together() {
    refused(
        &json!({"properties": {"a": {"$ref": "x/y"}, "b": {"$ref": "#/z"}, "c": {"$ref": "Gone"}}}),
        json!({}),
        &[
            ("/properties/a/$ref", "`x/y` is a path: a schema is named by its file name alone"),
            ("/properties/b/$ref", "there is nothing at /z"),
        ],
    );
    refused(
        &json!({"properties": {"a": {"$ref": "Gone"}, "b": {"$ref": "Lost"}, "c": {"$ref": "Bad"}}}),
        json!({"Bad": {"type": 1, "$ref": 2}}),
        &[
            ("/properties/c/$ref", "in `Bad` at /$ref: 2 is not of type \"string\""),
            (
                "/properties/c/$ref",
                "in `Bad` at /type: 1 is not valid under any of the schemas listed in the 'anyOf' keyword; nearest: the value is not one of \"array\", \"boolean\", \"integer\", \"null\", \"number\", \"object\" or \"string\"",
            ),
            ("/properties/a/$ref", "there is no schema named `Gone`"),
            ("/properties/b/$ref", "there is no schema named `Lost`"),
        ],
    );
}

#[test]
fn id_creates_no_reference_target() {
    let ids = json!({
        "$id": "https://example.com/schemas/whole.json",
        "properties": {"a": {"$ref": "#/$defs/word"}, "b": {"$ref": "Number"}, "c": {"$ref": "#/$defs/own"}},
        "$defs": {
            "word": {"type": "string"},
            "own": {"$id": "own", "$ref": "#/$defs/word", "$defs": {"word": {"type": "boolean"}}},
        },
    });
    let number = json!({"$id": "file:///etc/Number", "type": "number"});
    let good = json!({"a": "x", "b": 1, "c": true});
    let bad = [json!({"a": 1}), json!({"b": "x"}), json!({"c": "x"})];
    check(&ids, json!({"Number": number}), &[good], &bad);
    let fault = "`https://example.com/x` is a URL: nothing is fetched, and schemas are named";
    let url = json!({"$id": "https://example.com/x", "items": {"$ref": "https://example.com/x"}});
    refused(&url, json!({}), &[("/items/$ref", fault)]);
    let own = json!({"$defs": {"a": {"$id": "Own"}}, "items": {"$ref": "Own"}});
    refused(&own, json!({}), &[("/items/$ref", "there is no schema named `Own`")]);
    let old = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"a": {"$id": "#word", "type": "string"}},
        "items": {"$ref": "#word"},
    });
    check(&old, json!({}), &[json!(["x"])], &[json!([1])]);
    let property = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "http://example.com/x",
        "properties": {"id": {"type": "string"}, "$ref": {"type": "integer"}},
    });
    check(
        &property,
        json!({}),
        &[json!({"id": "x", "$ref": 1})],
        &[json!({"id": 1}), json!({"$ref": ""})],
    );
}

#[test]
fn data_is_not_searched_for_references() {
    let data = json!({"$ref": "https://example.com", "$id": "x"});
    let source = json!({"const": data, "default": data, "examples": [data], "x-own": data});
    check(&source, json!({}), &[data], &[json!({})]);
}

#[test]
fn dynamic_reference_needs_one_target() {
    let tree = json!({
        "$dynamicAnchor": "node",
        "properties": {"value": {"type": "integer"}, "children": {"items": {"$dynamicRef": "#node"}}},
        "additionalProperties": false,
    });
    let good = json!({"children": [{"value": 1}, {"children": []}]});
    let bad = json!({"children": [{"children": [{"value": "x"}]}]});
    check(&tree, json!({}), std::slice::from_ref(&good), std::slice::from_ref(&bad));
    check(&json!({"items": {"$ref": "T"}}), json!({"T": tree}), &[json!([good])], &[json!([bad])]);
    let both = json!({
        "$defs": {"a": {"$dynamicAnchor": "a", "type": "integer"}, "b": {"minimum": 3}},
        "items": {"$ref": "#/$defs/b", "$dynamicRef": "#a"},
    });
    check(&both, json!({}), &[json!([3])], &[json!([2]), json!([3.5])]);
    let outer = json!({"$dynamicAnchor": "node", "items": {"$ref": "T"}});
    let message = "in `T` at /properties/children/items/$dynamicRef: this `$dynamicRef` has several \
                   targets: name one by `$ref`";
    refused(&outer, json!({"T": tree}), &[("/items/$ref", message)]);
    let recursive = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$recursiveAnchor": true,
        "properties": {"next": {"$recursiveRef": "#"}},
        "additionalProperties": false,
    });
    check(&recursive, json!({}), &[json!({"next": {"next": {}}})], &[json!({"next": {"x": 1}})]);
}

#[test]
fn all_documents_are_of_one_draft() {
    let seven = "http://json-schema.org/draft-07/schema#";
    let pair = json!({"items": [{"type": "string"}]});
    let old = json!({"$schema": seven, "items": [{"type": "string"}]});
    let (good, bad) = (json!(["x"]), json!([1]));
    let within = |value: &Value| json!({"a": value});
    // A schema that is only a name has the draft of the named document.
    check(
        &json!({"$ref": "A"}),
        json!({"A": old}),
        std::slice::from_ref(&good),
        std::slice::from_ref(&bad),
    );
    // A document without `$schema` has the draft of the referring document.
    let source = json!({"$schema": seven, "properties": {"a": {"$ref": "A"}}});
    check(&source, json!({"A": pair}), &[within(&good)], &[within(&bad)]);
    check(&source, json!({"A": old}), &[within(&good)], &[within(&bad)]);
    let message = "in `A` at /$schema: this is written in draft-07 and what refers to it in 2020-12: \
                   give both one `$schema`";
    let source = json!({"properties": {"a": {"$ref": "A"}}});
    refused(&source, json!({"A": old}), &[("/properties/a/$ref", message)]);
    let new = "https://json-schema.org/draft/2020-12/schema";
    refused(&json!({"$schema": new, "$ref": "A"}), json!({"A": old}), &[("/$ref", message)]);
    let inside = json!({"items": {"$schema": seven}});
    let message = "a schema of draft-07 cannot be inside one of 2020-12";
    refused(&inside, json!({}), &[("/items/$schema", message)]);
}

#[test]
fn recursion_must_go_into_the_value() {
    let list = json!({"properties": {"next": {"$ref": "B"}}, "additionalProperties": false});
    let documents = json!({"A": list, "B": {"anyOf": [{"type": "null"}, {"$ref": "A.json"}]}});
    let documents = json!({"A.json": documents["A"], "B.json": documents["B"]});
    let good = json!({"next": {"next": null}});
    check(&json!({"$ref": "A"}), documents, &[good], &[json!({"next": {"x": 1}})]);

    let pure = json!({"A": {"$ref": "B"}, "B": {"$ref": "A"}});
    let message = "in `B` at /$ref: `A` is nothing but a reference that leads to itself";
    refused(&json!({"$ref": "A"}), pure.clone(), &[("/$ref", message)]);
    let message = "in `B`: this leads back to #/$defs/A without going into the value, so it would \
                   never end";
    refused(&json!({"items": {"$ref": "A"}}), pure, &[("/items/$ref", message)]);
    let never = |source: Value, path: &str, to: &str| {
        let message =
            format!("this leads back to #{to} without going into the value, so it would never end");
        refused(&source, json!({}), &[(path, &message)]);
    };
    never(json!({"$ref": "#"}), "", "");
    never(json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}), "/allOf/0/anyOf/0", "");
    never(json!({"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}), "/$defs/a/not", "/$defs/a");
    never(json!({"dependentSchemas": {"x": {"$ref": "#"}}}), "/dependentSchemas/x", "");
}

#[test]
fn a_format_is_not_asserted() {
    check(&json!({"format": "date-time"}), json!({}), &[json!("whenever")], &[]);
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "email"});
    check(&old, json!({}), &[json!("nobody")], &[]);
}

#[test]
fn value_faults_name_place_and_cause() {
    let source = json!({
        "properties": {
            "name": {"type": "string"},
            "a/b": {"items": {"minimum": 3}},
            "kind": {"enum": ["x", "y"]},
            "either": {"anyOf": [{"type": "integer"}, {"required": ["id"], "type": "object"}]},
        },
        "required": ["name", "kind"],
        "additionalProperties": false,
    });
    let schema = sound(&source, json!({}));
    let faults = |value: Value| -> Vec<_> {
        schema.errors(&value).into_iter().map(|fault| (fault.path, fault.message)).collect()
    };
    let expect = |value: Value, expected: &[(&str, &str)]| {
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, message)| (path.to_string(), message.to_string()))
            .collect();
        assert_eq!(faults(value), expected);
    };
    expect(json!({"name": "n", "kind": "x"}), &[]);
    expect(
        json!({"name": 1, "kind": "z", "a/b": [5, 1]}),
        &[
            ("/a~1b/1", "1 is less than the minimum of 3"),
            ("/kind", r#""z" is not one of "x" or "y""#),
            ("/name", r#"1 is not of type "string""#),
        ],
    );
    expect(json!({"name": "n"}), &[("", r#""kind" is a required property"#)]);
    expect(
        json!({"name": "n", "kind": "x", "either": {}}),
        &[(
            "/either",
            "{} is not valid under any of the schemas listed in the 'anyOf' keyword; nearest: \
             \"id\" is a required property",
        )],
    );
    let long = json!({"name": vec!["x"; 100], "kind": "x"});
    expect(long, &[("/name", r#"the value is not of type "string""#)]);
    let stranger = json!({"name": "n", "kind": "x", "é".repeat(10_000): 1});
    let found = faults(stranger);
    assert!(found[0].1.starts_with("Additional properties are not allowed ('éé"), "{found:?}");
    assert!(found[0].1.len() < 420 && found[0].1.ends_with('…'), "{found:?}");
}

#[test]
fn messages_help_to_fix_the_value() {
    let check = |schema: Value, value: Value, expected: &str| {
        let faults = sound(&schema, json!({"A": schema})).errors(&value);
        assert_eq!(faults[0].message, expected, "{schema} {value}");
    };
    let contains = |more: Value| {
        let mut schema = json!({"contains": {"const": 1}});
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    check(
        contains(json!({"minContains": 2})),
        json!([1]),
        "[1] must contain at least 2 items that are valid under `contains`",
    );
    check(
        json!({"properties": {"a": {"$ref": "A"}}, "contains": {"const": 1}, "maxContains": 1}),
        json!([1, 1]),
        "[1,1] must contain at most 1 item that is valid under `contains`",
    );
    check(contains(json!({})), json!([2]), "None of [2] are valid under the given schema");
    let text = "it is a text that holds JSON, send the JSON itself";
    check(
        json!({"type": "object"}),
        json!("{\"g\":1}"),
        &format!("\"{{\\\"g\\\":1}}\" is not of type \"object\": {text}"),
    );
    check(
        json!({"type": ["null", "number"]}),
        json!("7"),
        &format!("\"7\" is not of types \"null\", \"number\": {text}"),
    );
    check(json!({"type": "integer"}), json!("7.5"), "\"7.5\" is not of type \"integer\"");
    check(json!({"type": "array"}), json!("{}"), "\"{}\" is not of type \"array\"");
    check(json!({"type": "object"}), json!("{"), "\"{\" is not of type \"object\"");
}

#[test]
fn nearest_schema_is_reported() {
    let check = |schema: &Value, value: Value, expected: &str| {
        let faults = sound(schema, json!({})).errors(&value);
        let listed = faults[0].message.split_once("nearest: ").map(|(_, listed)| listed);
        assert_eq!(listed, Some(expected), "{schema} {value}: {faults:?}");
    };
    let shape = |kind: &str, more: Value, required: Value| {
        let mut schema = json!({"type": "object", "properties": more, "required": required});
        schema["properties"]["kind"] = json!({"const": kind});
        schema
    };
    let shapes = json!({"oneOf": [
        shape("circle", json!({"r": {"type": "number"}}), json!(["kind", "r"])),
        shape("box", json!({"a": {"type": "number"}, "b": {"type": "number"}}), json!(["kind", "a", "b"])),
        {"type": "null"},
        {"type": "array", "items": {"type": "number"}},
    ]});
    check(
        &shapes,
        json!({"kind": "box", "a": "x", "b": 1}),
        r#"/a: the value is not of type "number""#,
    );
    check(&shapes, json!({"kind": "box"}), r#""a" is a required property"#);
    check(&shapes, json!({"kind": "circle", "r": "x"}), r#"/r: the value is not of type "number""#);
    check(&shapes, json!([1, "x"]), r#"/1: the value is not of type "number""#);
    check(&shapes, json!({"kind": "ring", "r": 1}), r#"/kind: "circle" was expected"#);
    // Inside another value, and below a key.
    let inner = json!({"properties": {"list": {"items": {"anyOf": [{"type": "null"}, shapes]}}}});
    check(
        &inner,
        json!({"list": [null, {"kind": "box", "a": 1, "b": "x"}]}),
        r#"/list/1/b: the value is not of type "number""#,
    );
    let words = json!({"anyOf": [{"enum": ["a", "b"]}, {"type": "number"}]});
    check(&words, json!("c"), r#"the value is not one of "a" or "b""#);
}

#[test]
fn long_schema_parts_are_shortened() {
    let long = "x".repeat(1 << 20);
    let check = |schema: Value, expected: &str| {
        assert_eq!(sound(&schema, json!({})).errors(&json!(1))[0].message, expected);
    };
    let shown = format!("\"{}…", "x".repeat(79));
    check(json!({"const": long}), &format!("{shown} was expected"));
    check(json!({"enum": [long, 2]}), &format!("1 is not one of {shown} or 2"));
    check(json!({"enum": ["a"]}), "1 is not one of \"a\"");
    check(json!({"enum": ["a", long, "c"]}), &format!("1 is not one of \"a\", {shown} or \"c\""));
    check(
        json!({"enum": ["a", "b", "c", "d", "e", "f", "g", "h", "i"]}),
        "1 is not one of \"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\" or 2 other candidates",
    );
}

#[test]
fn very_many_errors_become_at_most_one() {
    let names: Vec<String> = (0..500).map(|n| format!("k{n}")).collect();
    let value = json!(vec![json!({}); 5000]);
    let required = sound(&json!({"items": {"required": names}}), json!({}));
    let listed = required.errors(&value);
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].path.as_str(), listed[0].message.as_str()),
        ("/0", "\"k0\" is a required property")
    );
    assert_eq!(required.errors(&json!([{}, {}])).len(), FAULTS_MAX);
    let branches: Vec<Value> = names.iter().map(|name| json!({"required": [name]})).collect();
    let listed = sound(&json!({"items": {"anyOf": branches}}), json!({})).errors(&value);
    let expected =
        "it is not what the schema says, and too large to say where: send less at a time";
    assert_eq!((listed.len(), listed[0].message.as_str()), (1, expected));
}

#[test]
fn every_schema_fault_has_a_kind() {
    let check = |source: Value, path: &str, kind: FaultKind| {
        let library = |name: &str| match name {
            "Broken" => Err("it is not JSON".to_owned()),
            "Number" => Ok(Some(json!(5))),
            "Self" => Ok(Some(json!({"$ref": "Self"}))),
            _ => Ok(None),
        };
        let faults = Schema::compile(&source, &library).err().unwrap_or_default();
        let found: Vec<_> = faults.iter().map(|f| (f.path.as_str(), f.kind)).collect();
        assert_eq!(found, [(path, kind)], "{source:.100}");
    };
    check(json!({"$ref": "Nobody"}), "/$ref", FaultKind::Missing);
    check(json!({"$ref": "Broken"}), "/$ref", FaultKind::Unreadable);
    check(json!({"$ref": "Number"}), "/$ref", FaultKind::Invalid);
    check(json!({"$ref": "Self"}), "/$ref", FaultKind::Circular);
    check(json!({"items": {"$ref": "a/b"}}), "/items/$ref", FaultKind::Reference);
    check(json!({"items": {"$ref": "http://a/b"}}), "/items/$ref", FaultKind::Reference);
    check(json!({"items": {"$ref": "#/nowhere"}}), "/items/$ref", FaultKind::Reference);
    check(json!({"items": {"$ref": "#nobody"}}), "/items/$ref", FaultKind::Reference);
    check(json!({"allOf": [{"$ref": "#"}]}), "/allOf/0", FaultKind::Circular);
    check(json!({"type": "text"}), "/type", FaultKind::Invalid);
    check(json!({"pattern": "("}), "/pattern", FaultKind::Invalid);
    check(json!({"$schema": "x"}), "/$schema", FaultKind::Invalid);
    check(json!(5), "", FaultKind::Invalid);
    let deep = (0..NESTING_MAX).fold(json!(true), |inner, _| json!({"not": inner}));
    check(json!({"not": deep}), "", FaultKind::TooDeep);
    let schema = sound(&json!({"type": "string"}), json!({}));
    assert_eq!(schema.errors(&json!(5))[0].kind, FaultKind::Value);
}

#[test]
fn a_library_may_be_a_function() {
    let library = |name: &str| Ok((name == "A").then(|| json!({"type": "string"})));
    let schema = Schema::compile(&json!({"$ref": "A"}), &library).unwrap();
    assert_eq!(schema.bundled(), &json!({"type": "string"}));
    let missing = Schema::compile(&json!({"$ref": "A"}), &NoLibrary).unwrap_err();
    assert_eq!(
        missing,
        [SchemaFault::new("/$ref", FaultKind::Missing, "there is no schema named `A`")]
    );
}

#[test]
fn at_most_thirty_faults_are_reported() {
    let schema = sound(&json!({"items": {"type": "string"}}), json!({}));
    let faults = schema.errors(&json!(vec![1; 100_000]));
    let paths: Vec<_> = faults.iter().map(|fault| fault.path.clone()).collect();
    let expected: Vec<_> = (0..FAULTS_MAX).map(|index| format!("/{index}")).collect();
    assert_eq!(paths, expected);
}

#[test]
fn exponential_work_is_refused_beforehand() {
    let into = |child: &str| json!({ "properties": { child: { "$ref": "#" } }, "required": ["q"] });
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "c": inner }));
    let refused = |schema: &Value, depth: usize| {
        let schema = Schema::compile(schema, &NoLibrary).unwrap();
        let errors = schema.errors(&nested(depth));
        errors.iter().any(|fault| fault.message.contains("more than this schema can be checked on"))
    };
    let thrice = json!({ "anyOf": [into("c"), into("c"), into("c")] });
    assert!(!refused(&thrice, 4));
    assert!(refused(&thrice, 30));
    let apart = json!({ "anyOf": [into("a"), into("b"), into("c")] });
    assert!(!refused(&apart, 200), "each way leads into another part");
    let once = json!({ "properties": { "c": { "$ref": "#" } } });
    assert!(!refused(&once, 400));
}
