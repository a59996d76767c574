//! The messages of faults, short for any value and any schema.
//!
//! Many readers are models that correct their answer. So a message shows the value if it is short,
//! and explains a failed `anyOf` by the branch that the value was probably meant for. Values and
//! schemas come from others and may have megabytes, so every text is bounded while it is written.

use std::cmp::Reverse;
use std::fmt::{self, Display, Write as _};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet, ValidationError};
use serde_json::Value;

/// The most bytes of a message.
const MESSAGE_MAX: usize = 400;

/// The most bytes of a value in a message.
const VALUE_MAX: usize = 80;

/// The most values of an `enum` in a message.
const OPTIONS_MAX: usize = 8;

/// Shortens a text to the length of a message.
pub(crate) fn cut(text: impl Display) -> String {
    within(text, MESSAGE_MAX).unwrap_or_else(|start| format!("{start}…"))
}

/// Describes an error, with the value if it is short.
pub(crate) fn describe(error: &ValidationError<'_>, schema: &Value) -> String {
    let value = within(error.instance(), VALUE_MAX).unwrap_or_else(|_| "the value".to_owned());
    let own = match matches_wanted(error, schema) {
        Some(wanted) => format!("{value} must contain {wanted}"),
        None => one(error, &value),
    };
    // A model may send its JSON inside a string. From a message about the type alone it would
    // not see what to change.
    if holds_what_is_asked(error) {
        return format!("{own}: it is a text that holds JSON, send the JSON itself");
    }
    // `anyOf` errors nest: only the innermost one names a concrete problem.
    match std::iter::successors(nearest(error), |inner| nearest(inner)).last() {
        Some(inner) => {
            let what = one(inner, "the value");
            let is_here = inner.instance_path() == error.instance_path();
            let at =
                if is_here { String::new() } else { format!("{}: ", cut(inner.instance_path())) };
            format!("{own}; nearest: {at}{what}")
        }
        None => own,
    }
}

/// Returns the bound of `minContains` or `maxContains`: `at least 2 items that are valid under …`.
fn matches_wanted(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    let (_, keyword) = error.schema_path().as_str().rsplit_once('/')?;
    let bound = match (error.kind(), keyword) {
        (ValidationErrorKind::Contains, "minContains") => "least",
        (ValidationErrorKind::Contains, "maxContains") => "most",
        _ => return None,
    };
    // A `minContains` that is absent means 1.
    let number = schema.pointer(error.schema_path().as_str()).map_or_else(|| "1".to_owned(), shown);
    let items = if number == "1" { "item that is" } else { "items that are" };
    Some(format!("at {bound} {number} {items} valid under `contains`"))
}

/// Returns whether a string contains the JSON that was expected in its place.
fn holds_what_is_asked(error: &ValidationError<'_>) -> bool {
    let (ValidationErrorKind::Type { kind }, Value::String(text)) =
        (error.kind(), error.instance().as_ref())
    else {
        return false;
    };
    let asked = match kind {
        TypeKind::Single(kind) => (*kind).into(),
        TypeKind::Multiple(kinds) => *kinds,
    };
    serde_json::from_str::<Value>(text).is_ok_and(|held| fits(asked, &held))
}

fn fits(asked: JsonTypeSet, held: &Value) -> bool {
    // `JsonType` of a number is never an integer, although a whole number fits where one is asked
    // for.
    let is_whole = held.is_i64() || held.is_u64();
    asked.contains(JsonType::from(held)) || (is_whole && asked.contains(JsonType::Integer))
}

/// Describes one error of a value that is shown as `value`. Parts of the schema are shortened, too.
fn one(error: &ValidationError<'_>, value: &str) -> String {
    match error.kind() {
        ValidationErrorKind::Constant { expected_value } => {
            format!("{} was expected", shown(expected_value))
        }
        ValidationErrorKind::Enum { options } => format!("{value} is not one of {}", some(options)),
        _ => cut(error.masked_with(value)),
    }
}

/// Lists the first of several values: `"a", "b" or 5 other candidates`.
fn some(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let first = if options.len() <= OPTIONS_MAX { options.len() } else { OPTIONS_MAX - 1 };
    let mut listed: Vec<String> = options.iter().take(first).map(shown).collect();
    let last = match options.len() - first {
        0 => listed.pop().unwrap_or_default(),
        left => format!("{left} other candidates"),
    };
    if listed.is_empty() { last } else { format!("{} or {last}", listed.join(", ")) }
}

fn shown(value: &Value) -> String {
    within(value, VALUE_MAX).unwrap_or_else(|start| format!("{start}…"))
}

/// Returns the error of the branch that the value was probably meant for, if none is valid. A
/// branch for another type is unlikely, and so is one whose `const` or `enum` differs. Among the
/// others, the nearest has the fewest errors, and the deepest ones.
fn nearest<'a>(error: &'a ValidationError<'_>) -> Option<&'a ValidationError<'static>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    let here = error.instance_path().as_str();
    let branches = context.iter().filter(|errors| !errors.is_empty());
    let nearest = branches.min_by_key(|errors| {
        let mismatch = errors.iter().map(|error| mismatch(error, here)).max();
        let deepest = errors.iter().map(depth).max();
        (mismatch, errors.len(), Reverse(deepest))
    })?;
    // Prefer the error about the type or kind: it explains most.
    nearest
        .iter()
        .min_by_key(|error| (Reverse(mismatch(error, here)), error.instance_path().as_str()))
}

/// Estimates from an error how unlikely it is that the value at `here` was meant for its schema.
fn mismatch(error: &ValidationError<'_>, here: &str) -> Mismatch {
    let below = error.instance_path().as_str().strip_prefix(here).unwrap_or_default();
    match (error.kind(), below.matches('/').count()) {
        (ValidationErrorKind::Type { .. } | ValidationErrorKind::FalseSchema, 0) => Mismatch::Type,
        (ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. }, 0 | 1) => {
            Mismatch::Kind
        }
        _ => Mismatch::No,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mismatch {
    /// It may be meant for the schema.
    No,
    /// A constant or enum that distinguishes kinds differs.
    Kind,
    /// It has another type.
    Type,
}

fn depth(error: &ValidationError<'_>) -> usize {
    error.instance_path().as_str().matches('/').count()
}

/// Returns the whole text, or the beginning of a text that is too long.
fn within(text: impl Display, limit: usize) -> Result<String, String> {
    let mut page = Page { text: String::new(), limit };
    match write!(page, "{text}") {
        Ok(()) => Ok(page.text),
        Err(fmt::Error) => Err(page.text),
    }
}

/// A buffer that fails when it is full, so that a text of megabytes is never produced.
struct Page {
    text: String,
    limit: usize,
}

impl fmt::Write for Page {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = self.limit - self.text.len();
        self.text.push_str(&piece[..piece.floor_char_boundary(room)]);
        if piece.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}
