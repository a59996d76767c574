//! What is said about a fault: short, whatever the value or the schema is.

use std::fmt::{self, Display, Write as _};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

/// The most bytes of a message.
const MESSAGE_MAX: usize = 400;

/// The most bytes of a value that are shown in a message.
const VALUE_MAX: usize = 80;

/// A text that is shown: its beginning, when it is long.
pub(crate) fn cut(text: impl Display) -> String {
    within(text, MESSAGE_MAX).unwrap_or_else(|start| format!("{start}…"))
}

/// What is wrong, with the value when it is short.
pub(crate) fn describe(error: &ValidationError<'_>) -> String {
    let own = match within(error.instance(), VALUE_MAX) {
        Ok(_) => cut(error),
        Err(_) => cut(error.masked_with("the value")),
    };
    // Such errors hold others of their kind: the last one says something.
    match std::iter::successors(nearest(error), |inner| nearest(inner)).last() {
        Some(inner) => {
            let what = cut(inner.masked_with("the value"));
            format!("{own}; nearest: {}: {what}", cut(inner.instance_path()))
        }
        None => own,
    }
}

/// Of several schemas none of which holds: what is wrong with the one that comes furthest.
fn nearest<'a>(error: &'a ValidationError<'_>) -> Option<&'a ValidationError<'static>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    let depth = |error: &ValidationError<'_>| error.instance_path().as_str().matches('/').count();
    let branches = context.iter().filter_map(|errors| Some((errors.first()?, errors.len())));
    let furthest = branches.max_by_key(|(first, count)| {
        let is_other_type = matches!(first.kind(), ValidationErrorKind::Type { .. });
        (depth(first), !is_other_type, std::cmp::Reverse(*count))
    });
    furthest.map(|(first, _)| first)
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
