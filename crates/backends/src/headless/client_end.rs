//! Why a client is not heard any further, and what is said of one that died.

use std::process::ExitStatus;

use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::time::Span;

use super::{ClientProtocol, SessionStep, TurnReader as _};
use crate::contract::Answer;
use crate::script::describe;

/// Why a client is not heard any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientEnd {
    /// It exited.
    Exited {
        /// How, where that is known.
        status: Option<ExitStatus>,
        /// The end of what it wrote to stderr.
        stderr: String,
    },
    /// It had its result, and was ended because it did not go.
    Settled,
    /// It was ended, because nobody waits for it.
    Cancelled,
    /// It was ended, because a clock ran out.
    TimedOut {
        /// Which.
        clock: Clock,
        /// Its length.
        after: Span,
    },
    /// It was ended, because of what it said: nothing good could follow.
    Aborted,
    /// It was ended, because it writes too much.
    Flooded,
    /// It was ended or died, because its files cannot be written or read.
    Environment {
        /// Why.
        why: String,
    },
}

/// Returns the answer of the turn. If the machine lost output of the client, the turn fails as
/// `Environment` unless its result was read, and its cost is known in part at best.
pub(super) fn answer<D: ClientProtocol>(
    protocol: &D,
    turn: D::Turn,
    end: ClientEnd,
    step: &SessionStep,
) -> Answer {
    match end {
        ClientEnd::Environment { why } if !turn.is_complete() => Answer::Failed {
            failure: TurnFailure::Environment { why },
            cost: protocol.cost(&turn).at_least(),
            denied: Vec::new(),
            session: turn.session(),
        },
        end => protocol.answer(turn, end, step),
    }
}

/// How programs name a full disk or a used-up quota. Only a client without a result is searched for it:
/// its own files may be on another disk than the transcript.
const FULL_DISK_SIGNS: [&str; 4] =
    ["ENOSPC", "No space left on device", "EDQUOT", "Disk quota exceeded"];

/// Whether the errors that a client wrote say that it could not write something else.
pub(super) fn reports_full_disk(stderr: &str) -> bool {
    FULL_DISK_SIGNS.iter().any(|sign| stderr.contains(sign))
}

/// What became of a client that has no result.
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

/// More than so many bytes are not read.
pub(crate) fn output_too_large(limit: u64) -> TurnFailure {
    TurnFailure::OutputTooLarge { limit, head: String::new(), tail: String::new() }
}

/// In one line that fits on a screen.
pub(crate) fn shorten(text: &str) -> String {
    const LENGTH: usize = 500;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" / ");
    match line.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
