//! What is said about a fault: short, whatever the value or the schema is.

use std::cmp::Reverse;
use std::fmt::{self, Display, Write as _};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet, ValidationError};
use serde_json::Value;

/// The most bytes of a message.
const MESSAGE_MAX: usize = 400;

/// The most bytes of a value that are shown in a message.
const VALUE_MAX: usize = 80;

/// The most values of an `enum` that are shown.
const OPTIONS_MAX: usize = 8;

/// A text that is shown: its beginning, when it is long.
pub(crate) fn cut(text: impl Display) -> String {
    within(text, MESSAGE_MAX).unwrap_or_else(|start| format!("{start}…"))
}

/// What is wrong by a schema, with the value when it is short.
pub(crate) fn describe(error: &ValidationError<'_>, schema: &Value) -> String {
    let value = within(error.instance(), VALUE_MAX).unwrap_or_else(|_| "the value".to_owned());
    let own = match matches_wanted(error, schema) {
        Some(wanted) => format!("{value} holds another number of such items: {wanted}"),
        None => one(error, &value),
    };
    if holds_what_is_asked(error) {
        return format!("{own}: it is a text that holds JSON, send the JSON itself");
    }
    // Such errors hold others of their kind: the last one says something.
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

/// `at least 2 are needed`, where `contains` asks for more than one.
fn matches_wanted(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    let (_, keyword) = error.schema_path().as_str().rsplit_once('/')?;
    let bound = match (error.kind(), keyword) {
        (ValidationErrorKind::Contains, "minContains") => "least",
        (ValidationErrorKind::Contains, "maxContains") => "most",
        _ => return None,
    };
    // One that is not written is 1.
    let number = schema.pointer(error.schema_path().as_str()).map_or_else(|| "1".to_owned(), shown);
    Some(format!("at {bound} {number} must be valid under `contains`"))
}

/// Whether a text stands where the JSON that it holds would be right.
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
    let is_whole = held.is_i64() || held.is_u64();
    asked.contains(JsonType::from(held)) || (is_whole && asked.contains(JsonType::Integer))
}

/// What one error says of a value that is shown so. What a schema asks for can be as long as any value.
fn one(error: &ValidationError<'_>, value: &str) -> String {
    match error.kind() {
        ValidationErrorKind::Constant { expected_value } => {
            format!("{} was expected", shown(expected_value))
        }
        ValidationErrorKind::Enum { options } => format!("{value} is not one of {}", some(options)),
        _ => cut(error.masked_with(value)),
    }
}

/// The first of several values: `"a", "b" or 5 other candidates`.
fn some(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let first = if options.len() <= OPTIONS_MAX { options.len() } else { OPTIONS_MAX - 1 };
    let mut told: Vec<String> = options.iter().take(first).map(shown).collect();
    let last = match options.len() - first {
        0 => told.pop().unwrap_or_default(),
        left => format!("{left} other candidates"),
    };
    if told.is_empty() { last } else { format!("{} or {last}", told.join(", ")) }
}

fn shown(value: &Value) -> String {
    within(value, VALUE_MAX).unwrap_or_else(|start| format!("{start}…"))
}

/// Of several schemas none of which holds: what is wrong with the one that the value seems to be meant
/// for. A value of another type is not, nor is one whose `kind` says something else; of those left, the
/// nearest has the fewest faults, and they stand deepest.
fn nearest<'a>(error: &'a ValidationError<'_>) -> Option<&'a ValidationError<'static>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    let here = error.instance_path().as_str();
    let branches = context.iter().filter(|errors| !errors.is_empty());
    let nearest = branches.min_by_key(|errors| {
        let alien = errors.iter().map(|error| alien(error, here)).max();
        let deepest = errors.iter().map(depth).max();
        (alien, errors.len(), Reverse(deepest))
    })?;
    // What says that it is another kind of thing says most.
    nearest.iter().min_by_key(|error| (Reverse(alien(error, here)), error.instance_path().as_str()))
}

/// How much an error says that the value at `here` was not meant for its schema.
fn alien(error: &ValidationError<'_>, here: &str) -> Alien {
    let below = error.instance_path().as_str().strip_prefix(here).unwrap_or_default();
    match (error.kind(), below.matches('/').count()) {
        (ValidationErrorKind::Type { .. } | ValidationErrorKind::FalseSchema, 0) => Alien::Type,
        (ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. }, 0 | 1) => {
            Alien::Kind
        }
        _ => Alien::No,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Alien {
    /// It may well be meant.
    No,
    /// A word that tells kinds apart says otherwise.
    Kind,
    /// It is something else altogether.
    Type,
}

fn depth(error: &ValidationError<'_>) -> usize {
    error.instance_path().as_str().matches('/').count()
}

/// The whole text, or as much of it as fits.
fn within(text: impl Display, limit: usize) -> Result<String, String> {
    let mut page = Page { text: String::new(), limit };
    match write!(page, "{text}") {
        Ok(()) => Ok(page.text),
        Err(fmt::Error) => Err(page.text),
    }
}

/// Stops whoever writes more than fits, so that a text of megabytes is never made.
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
