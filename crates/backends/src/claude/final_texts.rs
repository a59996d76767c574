//! The texts of a result that the client did not send as messages.

use super::wire::Conclusion;
use crate::headless::{Speaker, TranscriptItem};

/// Returns the final texts of a client that were not among its messages.
pub(super) fn unstreamed_items(conclusion: &Conclusion, last: &str) -> Vec<TranscriptItem> {
    // The result normally repeats the last message, so it is shown only if it differs.
    let by = if conclusion.is_error { Speaker::Client } else { Speaker::Agent };
    let result = conclusion.result.iter().filter(|result| !last.ends_with(result.as_str()));
    let result = result.map(|text| TranscriptItem::Final { by, text: text.clone() });
    let errors = conclusion.errors.iter();
    let errors =
        errors.map(|text| TranscriptItem::Final { by: Speaker::Client, text: text.clone() });
    result.chain(errors).collect()
}
