//! The calls of the validator, and the faults it finds.
//!
//! Every call has a stack of sufficient size, from `stack_bound`. The number of errors is bounded
//! before they are collected, because the validator builds all of them at once. Whether a schema
//! may be used at all is decided earlier, in `graph`.

use jsonschema::{ValidationError, Validator, draft4, draft6, draft7, draft201909, draft202012};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::message::{cut, describe};
use crate::stack_bound::{StackBound, StackExceeded};
use crate::{FAULTS_MAX, FaultKind, SchemaFault};

/// Returns the faults of a document as a schema of its draft.
pub(crate) fn schema_faults(
    document: &Value,
    nesting: usize,
    dialect: Dialect,
) -> Vec<SchemaFault> {
    let found = StackBound::compile(nesting, || {
        let validator = match dialect {
            Dialect::Draft4 => draft4::meta::validator(),
            Dialect::Draft6 => draft6::meta::validator(),
            Dialect::Draft7 => draft7::meta::validator(),
            Dialect::Draft201909 => draft201909::meta::validator(),
            Dialect::Draft202012 => draft202012::meta::validator(),
        };
        let fault = |error: ValidationError<'_>| {
            let path = error.instance_path().to_string();
            SchemaFault::new(path, FaultKind::Invalid, describe(&error, &Value::Null))
        };
        let errors = collect_errors(&validator, document, &META);
        errors.into_iter().map(fault).collect()
    });
    found.unwrap_or_else(|StackExceeded| vec![SchemaFault::new("", FaultKind::TooDeep, too_deep())])
}

/// Returns the faults of a value.
pub(crate) fn errors(
    validator: &Validator,
    schema: &Value,
    stack: &StackBound,
    value: &Value,
) -> Vec<SchemaFault> {
    let depth = depth(value);
    let found = stack.check(depth, || {
        // `is_valid` is much faster than collecting errors, and most values are valid.
        if validator.is_valid(value) {
            return Vec::new();
        }
        let fault = |error: ValidationError<'_>| {
            SchemaFault::new(cut(error.instance_path()), FaultKind::Value, describe(&error, schema))
        };
        let errors = collect_errors(validator, value, &Size::of(schema));
        let faults: Vec<SchemaFault> = errors.into_iter().map(fault).collect();
        if faults.is_empty() {
            vec![SchemaFault::new("", FaultKind::Value, TOO_MANY_ERRORS)]
        } else {
            faults
        }
    });
    found.unwrap_or_else(|StackExceeded| {
        let message =
            format!("the value has {depth} levels, more than this schema can be checked on");
        vec![SchemaFault::new("", FaultKind::Value, message)]
    })
}

/// The most possible errors of a value before they are not listed: each takes a few hundred bytes,
/// and the validator builds all of them before the first can be read.
const ERRORS_MAX: usize = 500_000;

const TOO_MANY_ERRORS: &str =
    "it is not what the schema says, and too large to say where: send less at a time";

/// The parts of a schema that bound the number of errors.
struct Size {
    parts: usize,
    /// Whether one error may contain those of every branch.
    has_branches: bool,
}

/// The size of a meta-schema: its branches apply to single words, so they are not counted.
const META: Size = Size { parts: 100, has_branches: false };

impl Size {
    fn of(schema: &Value) -> Self {
        let (mut parts, mut has_branches) = (0, false);
        each(schema, |part, _| {
            parts += 1;
            has_branches |= part.get("anyOf").or_else(|| part.get("oneOf")).is_some();
        });
        Self { parts, has_branches }
    }
}

/// Collects errors, fewer or none if there could be too many.
fn collect_errors<'v>(
    validator: &'v Validator,
    value: &'v Value,
    schema: &Size,
) -> Vec<ValidationError<'v>> {
    let mut parts = 0_usize;
    each(value, |_, _| parts += 1);
    if parts.saturating_mul(schema.parts) <= ERRORS_MAX {
        validator.iter_errors(value).take(FAULTS_MAX).collect()
    // Even a single error contains the errors of every branch, so not even the first one can be
    // built.
    } else if schema.has_branches {
        Vec::new()
    } else {
        validator.validate(value).err().into_iter().collect()
    }
}

pub(crate) fn too_deep() -> String {
    "there is not enough memory for a schema this deep".to_owned()
}

/// Returns the deepest nesting of a value: 0 for a value that is not a container, or an empty one.
pub(crate) fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    each(value, |_, depth| deepest = deepest.max(depth));
    deepest
}

/// Calls `look` with a value and everything inside it, each with its depth.
fn each<'v>(value: &'v Value, mut look: impl FnMut(&'v Value, usize)) {
    // A work list instead of recursion: this runs before the depth of the value is known.
    let mut ahead = vec![(value, 0)];
    while let Some((value, depth)) = ahead.pop() {
        look(value, depth);
        match value {
            Value::Array(items) => ahead.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => ahead.extend(map.values().map(|value| (value, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
