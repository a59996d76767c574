use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::crayfish::condition::Test;
use crate::crayfish::document::{Io, OnError, OnMaxIters, SessionMode, StepKind};
use crate::crayfish::envelope::request;
use crate::crayfish::error_code::ErrorCode;
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::reading;
use crate::crayfish::validate::keys;

fn at(schema: &str, pointer: &str) -> Value {
    let schema = reading::read_text(schema).unwrap();
    schema.pointer(pointer).cloned().unwrap_or_else(|| panic!("{pointer}"))
}

#[test]
fn the_schemas_know_the_keys_that_validation_knows() {
    let check = |schema: &str, pointer: &str, keys: &[&str]| {
        let properties = at(schema, &format!("{pointer}/properties"));
        let properties: BTreeSet<&str> =
            properties.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(properties, keys.iter().copied().collect(), "{pointer}");
        assert_eq!(at(schema, &format!("{pointer}/additionalProperties")), false, "{pointer}");
    };
    check(DOCUMENT, "", keys::DOCUMENT);
    check(DOCUMENT, "/$defs/exec", keys::EXEC);
    check(DOCUMENT, "/$defs/run", keys::RUN);
    check(DOCUMENT, "/$defs/io", keys::IO);
    check(DOCUMENT, "/$defs/files/additionalProperties", keys::CONTRACT);
    check(DOCUMENT, "/$defs/inputFrom/anyOf/1", keys::INPUT_FROM);
    check(DOCUMENT, "/$defs/agent", keys::AGENT);
    check(DOCUMENT, "/$defs/agent/properties/session", keys::SESSION);
    check(DOCUMENT, "/$defs/if", keys::IF);
    check(DOCUMENT, "/$defs/forEach", keys::FOR_EACH);
    check(DOCUMENT, "/$defs/while", keys::WHILE);
    check(DOCUMENT, "/$defs/condition", keys::CONDITION);
    check(REQUEST, "", request::KEYS);
    check(REQUEST, "/properties/ref", request::REF_KEYS);
    check(REPLY, "/$defs/request/properties/session", keys::SESSION);
}

#[test]
fn the_schemas_know_the_words_that_validation_knows() {
    let check = |schema: &str, pointer: &str, words: &[&str]| {
        assert_eq!(at(schema, &format!("{pointer}/enum")), serde_json::json!(words), "{pointer}");
    };
    check(DOCUMENT, "/$defs/step/properties/kind", &StepKind::NAMES);
    check(DOCUMENT, "/$defs/io/properties/mode", &Io::MODES);
    check(DOCUMENT, "/$defs/agent/properties/session/properties/mode", &SessionMode::NAMES);
    check(DOCUMENT, "/$defs/forEach/properties/onError", &OnError::NAMES);
    check(DOCUMENT, "/$defs/while/properties/onMaxIters", &OnMaxIters::NAMES);
    check(DOCUMENT, "/$defs/condition/properties/op", &Test::OPERATORS);
    check(REPLY, "/$defs/request/properties/session/properties/mode", &SessionMode::NAMES);
    check(REPLY, "/properties/error", &ErrorCode::ALL.map(ErrorCode::as_str));
    let code = "/properties/errors/items/properties/code";
    check(REPLY, code, &ProblemCode::ALL.map(ProblemCode::as_str));
}
