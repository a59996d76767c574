//! Warnings: findings that change nothing in a run.

use std::fmt;

use super::program::without_result;
use crate::failure::AgentFailure;
use crate::ids::BackendName;
use crate::protocol::{Malformed, TagName};
use crate::text::counted;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A finding that a user should see, but that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// A malformed tag beside a valid one.
    MalformedTag(Malformed),
    /// An attribute that its tag does not have.
    UnknownAttribute {
        tag: TagName,
        name: String,
    },
    /// The output was not UTF-8; the bad bytes became U+FFFD.
    InvalidUtf8,
    /// The prompt names a template variable that nothing sets.
    UnknownVariable {
        name: String,
        /// The nearest name that is set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<String>,
    },
    /// `stack="clear"` dropped pending returns.
    ReturnsDropped {
        frames: u32,
    },
    /// The client denied a tool.
    ToolDenied {
        tool: String,
    },
    /// The run has spent this much of its cap.
    Spent {
        /// 50, 80 or 95.
        percent: u32,
    },
    /// An iteration failed, and the loop continues.
    IterationFailed {
        /// The iteration, from 1.
        iteration: u32,
        failure: AgentFailure,
    },
    /// The result of an iteration does not count, because the command did not pass.
    ResultRefused {
        /// The iteration, from 1.
        iteration: u32,
        /// `exit status 1: 2 tests failed`
        why: String,
    },
    /// The command did not pass after an iteration without a result.
    NotPassed {
        /// The iteration, from 1.
        iteration: u32,
        /// `exit status 1: 2 tests failed`
        why: String,
    },
    /// The loop ended without a result.
    Exhausted {
        /// The number of iterations.
        iterations: u32,
        /// The command that no result passed, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<String>,
    },
    /// A wait began again, because the clock was set back.
    ClockSetBack {
        until: Timestamp,
    },
    /// A conversation is continued after a wait so long that its client may have deleted it.
    LongWait {
        backend: BackendName,
    },
    /// The replies answer a question with none of its options, so a person is asked.
    AnswerIsNoOption {
        answer: String,
        options: Vec<String>,
    },
    Other {
        message: String,
    },
}

impl Warning {
    /// Returns whether a workflow file is probably wrong, so that even a quiet run says so.
    pub const fn is_mistake_of_workflow(&self) -> bool {
        matches!(self, Self::UnknownVariable { .. } | Self::AnswerIsNoOption { .. })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MalformedTag(malformed) => write!(f, "ignored {malformed}"),
            Self::UnknownAttribute { tag, name } => {
                write!(f, "<{tag}> has no attribute {name:?}; it was ignored")
            }
            Self::InvalidUtf8 => write!(f, "the output was not UTF-8; bad bytes were replaced"),
            Self::UnknownVariable { name, nearest } => {
                write!(f, "nothing sets {{{{{name}}}}}; it stays in the prompt")?;
                match nearest {
                    Some(nearest) => write!(f, " (did you mean {{{{{nearest}}}}}?)"),
                    None => Ok(()),
                }
            }
            Self::ReturnsDropped { frames } => {
                write!(f, "stack=\"clear\" dropped {}", counted(*frames, "pending return"))
            }
            Self::ToolDenied { tool } => write!(f, "the client denied {tool}"),
            // Views print the exact percentage instead (`ViewEvent::Warned`).
            Self::Spent { percent } => write!(f, "{percent} % of the cap is spent"),
            Self::IterationFailed { iteration, failure } => {
                write!(f, "iteration {iteration} failed: {failure}")
            }
            Self::ResultRefused { iteration, why } => {
                write!(f, "the result of iteration {iteration} does not count: {why}")
            }
            Self::NotPassed { iteration, why } => {
                write!(f, "after iteration {iteration} the command did not pass: {why}")
            }
            Self::Exhausted { iterations, until } => {
                f.write_str(&without_result(*iterations, until.as_deref()))
            }
            // Views print the time in the format of their clock (`ViewEvent::Warned`).
            Self::ClockSetBack { until } => {
                write!(f, "the clock was set back: the wait begins again, until {until}")
            }
            Self::LongWait { backend } => write!(
                f,
                "{backend} may have deleted the conversation by then; use <reset after=\"…\">, \
                 which needs none"
            ),
            Self::AnswerIsNoOption { answer, options } => write!(
                f,
                "the answer {answer:?} in the replies is not an option; the options are {}",
                options.join(", ")
            ),
            Self::Other { message } => f.write_str(message),
        }
    }
}
