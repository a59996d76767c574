//! JSON Schemas and values: a schema is refused or it is sound, and its bundle accepts exactly the
//! values that the schema accepts.

use raymond_core::crayfish::reading;
use raymond_schema::{FAULTS_MAX, FaultKind, NoLibrary, Schema, SchemaFault};
use serde_json::{Value, json};

use crate::Target;

/// `{"schema": …, "library": {name: schema}, "values": […]}`; a text without them is a schema.
pub const TARGET: Target = Target {
    name: "schema",
    inputs: 1_500,
    words: &[
        "\"$ref\":\"#\"",
        "\"$ref\":\"A\"",
        "\"$ref\":\"#/$defs/a\"",
        "\"$dynamicRef\":\"#m\"",
        "\"$dynamicAnchor\":\"m\"",
        "\"$anchor\":\"a\"",
        "\"$id\":\"http://x/y\"",
        "\"$recursiveRef\":\"#\"",
        "\"$schema\":\"http://json-schema.org/draft-07/schema#\"",
        "\"$defs\":{\"a\":",
        "\"definitions\":{",
        "\"type\":\"object\"",
        "\"type\":[\"string\",\"null\"]",
        "\"properties\":{",
        "\"required\":[\"a\"]",
        "\"items\":",
        "\"prefixItems\":[",
        "\"additionalProperties\":",
        "\"unevaluatedProperties\":false",
        "\"unevaluatedItems\":false",
        "\"patternProperties\":{\"^a\":",
        "\"pattern\":\"(a+)+$\"",
        "\"pattern\":\"(?=a)\\\\1\"",
        "\"allOf\":[",
        "\"anyOf\":[",
        "\"oneOf\":[",
        "\"not\":",
        "\"if\":",
        "\"then\":",
        "\"else\":",
        "\"enum\":[",
        "\"const\":",
        "\"minimum\":",
        "\"multipleOf\":0.01",
        "\"multipleOf\":0",
        "\"uniqueItems\":true",
        "\"dependentSchemas\":{",
        "\"contains\":",
        "\"minContains\":0",
        "\"format\":\"email\"",
        "\"contentSchema\":",
        "true",
        "false",
        "null",
        "{}",
        "[]",
        "1e308",
        "-0",
        "},{",
        "\"values\":[",
        "\"library\":{\"A\":",
        "\"schema\":",
    ],
    memory: 128 << 20,
    check,
};

fn check(bytes: &[u8]) {
    let Ok(given) = reading::read(bytes) else { return };
    let source = given.get("schema").unwrap_or(&given);
    let library = |name: &str| -> Result<Option<Value>, String> {
        Ok(given.get("library").and_then(|library| library.get(name)).cloned())
    };
    let schema = match Schema::compile(source, &library) {
        Ok(schema) => schema,
        Err(faults) => return check_faults(source, &faults),
    };
    // A run pins the bundle, and the library may be gone when the run resumes.
    let bundled = Schema::compile(schema.bundled(), &NoLibrary).expect("a bundle is sound");
    let values = given.get("values").and_then(Value::as_array).cloned().unwrap_or_default();
    // Also fixed values, because an input may contain none.
    for value in values.iter().chain([&json!(null), &json!({"a": [1]}), source]) {
        let faults = schema.errors(value);
        assert!(faults.len() <= FAULTS_MAX, "{} faults are told", faults.len());
        assert!(
            faults.iter().all(|fault| fault.kind == FaultKind::Value && !fault.message.is_empty())
        );
        let of_bundle = bundled.errors(value);
        assert_eq!(of_bundle.is_empty(), faults.is_empty(), "its bundle disagrees on {value}");
    }
}

/// Every fault leads into the schema.
fn check_faults(source: &Value, faults: &[SchemaFault]) {
    assert!(!faults.is_empty(), "a schema is refused, and nothing is said");
    for fault in faults {
        assert!(!fault.message.is_empty(), "{fault:?} says nothing");
        let found = source.pointer(&fault.path).is_some() || fault.path.len() > 1_000;
        assert!(found, "{fault:?} leads nowhere");
    }
}
