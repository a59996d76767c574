//! The reasons for which Raymond stops reading a client, and the messages for dead clients.
//!
//! `follow` produces a [`ClientEnd`]; the protocol of the client turns it into an answer.

use std::process::ExitStatus;

use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::time::Span;

use super::screen_line::shorten;
use crate::script::describe;

/// The reason for which Raymond stopped reading a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientEnd {
    /// The client exited.
    Exited {
        /// The exit status, if it is known.
        status: Option<ExitStatus>,
        /// The end of its stderr.
        stderr: String,
    },
    /// The client had a result but did not exit, so Raymond ended it.
    Settled,
    /// The turn was cancelled, so Raymond ended the client.
    Cancelled,
    /// A timeout passed, so Raymond ended the client.
    TimedOut {
        clock: Clock,
        /// The length of the timeout.
        after: Span,
    },
    /// The output of the client made a useful result impossible, so Raymond ended the client.
    Aborted,
    /// The client wrote too much, so Raymond ended it.
    Flooded,
    /// The files of the client could not be written or read.
    Environment { why: String },
}

/// The texts by which programs report a full disk or an exceeded quota. Only the stderr of a client
/// without a result is searched, because a client may keep its own files on another disk than the
/// transcript.
const FULL_DISK_SIGNS: [&str; 4] =
    ["ENOSPC", "No space left on device", "EDQUOT", "Disk quota exceeded"];

/// Whether the stderr of a client reports a full disk.
pub(super) fn reports_full_disk(stderr: &str) -> bool {
    FULL_DISK_SIGNS.iter().any(|sign| stderr.contains(sign))
}

/// Describes the death of a client that has no result.
pub(crate) fn death_message(end: &ClientEnd) -> String {
    let mut why = "the client died without a result".to_owned();
    if let ClientEnd::Exited { status, stderr } = end {
        if let Some(status) = status {
            why = format!("{why}, with {}", describe(*status));
        }
        if !stderr.is_empty() {
            why = format!("{why}: {}", shorten(stderr));
        }
    }
    why
}

/// Returns the failure for output of more than `limit` bytes.
pub(crate) fn output_too_large(limit: u64) -> TurnFailure {
    TurnFailure::OutputTooLarge { limit, head: String::new(), tail: String::new() }
}
