//! Why a client is not heard any further, and what is said of one that died.

use std::process::ExitStatus;

use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::time::Span;

use super::{Dialect, Fold as _, Step};
use crate::contract::Answer;
use crate::script::describe;

/// Why a client is not heard any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
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
    Hopeless,
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
pub(super) fn answer<D: Dialect>(dialect: &D, turn: D::Turn, end: End, step: &Step) -> Answer {
    match end {
        End::Environment { why } if !turn.is_complete() => Answer::Failed {
            failure: TurnFailure::Environment { why },
            cost: dialect.cost(&turn).at_least(),
            denied: Vec::new(),
            session: turn.session(),
        },
        end => dialect.answer(turn, end, step),
    }
}

/// How programs name a full disk or a used-up quota. Only a client without a result is searched for it:
/// its own files may be on another disk than the transcript.
const NO_ROOM: [&str; 4] = ["ENOSPC", "No space left on device", "EDQUOT", "Disk quota exceeded"];

/// Whether the errors that a client wrote say that it could not write something else.
pub(super) fn tells_of_no_room(stderr: &str) -> bool {
    NO_ROOM.iter().any(|sign| stderr.contains(sign))
}

/// What became of a client that has no result.
pub(crate) fn died(end: &End) -> String {
    let mut why = "the client died without a result".to_owned();
    if let End::Exited { status, stderr } = end {
        if let Some(status) = status {
            why = format!("{why}, with {}", describe(*status));
        }
        if !stderr.is_empty() {
            why = format!("{why}: {}", shortened(stderr));
        }
    }
    why
}

/// More than so many bytes are not read.
pub(crate) fn too_large(limit: u64) -> TurnFailure {
    TurnFailure::OutputTooLarge { limit, head: String::new(), tail: String::new() }
}

/// In one line that fits on a screen.
pub(crate) fn shortened(text: &str) -> String {
    const LENGTH: usize = 500;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" / ");
    match line.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
