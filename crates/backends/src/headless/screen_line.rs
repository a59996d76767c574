//! Long texts of clients as one line, for messages and transcript items.

use raymond_core::text::{excerpt, joined_lines};

/// Returns the text as one line that fits on a screen.
pub(crate) fn shorten(text: &str) -> String {
    // In characters: about six lines of a terminal.
    const LENGTH: usize = 500;
    excerpt(&joined_lines(text), LENGTH).into_owned()
}
