//! The stable code of a failed call, on which callers can act.
//!
//! The list is closed. Every code has its cause and its remedy here, and the book prints both.
//! Messages may change, but codes may not. An [`ErrorCode`] describes a whole call; a
//! [`ProblemCode`](super::ProblemCode) describes one place in a document, request or answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The stable code of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request could not be read.
    BadRequest,
    /// The document has problems.
    InvalidWorkflow,
    /// The agent has no workspace.
    UnknownAgent,
    BadWorkspace,
    UnaskedOutput,
    UnknownName,
    /// The list path of a `forEach` leads to a value that is not an array.
    NotAnArray,
    TooLarge,
    ExecFailed,
    AgentFailed,
    /// Every attempt of an agent step was invalid.
    AgentOutputSchemaFailed,
    /// `until` was still false after the last iteration.
    WhileNotConverged,
    /// The run was started with another document, variables or schemas.
    RunMismatch,
    /// Another call is driving the run.
    RunLocked,
    StoreFailed,
    /// The caller cancelled the call.
    Cancelled,
    /// A bug in the engine.
    Internal,
}

impl ErrorCode {
    /// All codes, in the order in which a call is checked.
    pub const ALL: [Self; 17] = [
        Self::BadRequest,
        Self::UnknownAgent,
        Self::BadWorkspace,
        Self::InvalidWorkflow,
        Self::RunLocked,
        Self::RunMismatch,
        Self::UnaskedOutput,
        Self::UnknownName,
        Self::NotAnArray,
        Self::TooLarge,
        Self::ExecFailed,
        Self::AgentFailed,
        Self::AgentOutputSchemaFailed,
        Self::WhileNotConverged,
        Self::StoreFailed,
        Self::Cancelled,
        Self::Internal,
    ];

    // The words must be those of serde, because a journal and a reply have to agree.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::InvalidWorkflow => "invalid_workflow",
            Self::UnknownAgent => "unknown_agent",
            Self::BadWorkspace => "bad_workspace",
            Self::UnaskedOutput => "unasked_output",
            Self::UnknownName => "unknown_name",
            Self::NotAnArray => "not_an_array",
            Self::TooLarge => "too_large",
            Self::ExecFailed => "exec_failed",
            Self::AgentFailed => "agent_failed",
            Self::AgentOutputSchemaFailed => "agent_output_schema_failed",
            Self::WhileNotConverged => "while_not_converged",
            Self::RunMismatch => "run_mismatch",
            Self::RunLocked => "run_locked",
            Self::StoreFailed => "store_failed",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }

    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }

    /// Returns the cause in one line.
    pub fn cause(self) -> &'static str {
        match self {
            Self::BadRequest => {
                "the request is not strict JSON, not an object, or has an unknown or mistyped key"
            }
            Self::InvalidWorkflow => {
                "the document, or a schema it names, has problems; nothing ran"
            }
            Self::UnknownAgent => "no workspace is configured for this `agentId`",
            Self::BadWorkspace => {
                "the workspace is missing, or is not a directory that can be used"
            }
            Self::UnaskedOutput => {
                "an entry of `agentOutputs` or `attempts` fits no step, or is for another run, a missing run or a future attempt"
            }
            Self::UnknownName => {
                "an expression or `inputFrom` leads to no value when its step is reached"
            }
            Self::NotAnArray => {
                "the `listPath` of a forEach leads to something other than an array"
            }
            Self::TooLarge => {
                "a step with its expressions filled in, a list, or the stored results exceed a limit"
            }
            Self::ExecFailed => {
                "a program failed in every attempt, or one of its inputs violates its contract"
            }
            Self::AgentFailed => {
                "the backend of a run that `raymond run` started could not answer an agent step"
            }
            Self::AgentOutputSchemaFailed => "no attempt of an agent step matched its schema",
            Self::WhileNotConverged => "`until` was still false after `maxIters` iterations",
            Self::RunMismatch => {
                "the run was started with another document, other vars or other schemas, or by `raymond run`"
            }
            Self::RunLocked => "another call works on this run at the moment",
            Self::StoreFailed => "the record of the run could not be read or written",
            Self::Cancelled => {
                "the caller cancelled the call, so Raymond ended the running step; or a user cancelled the run"
            }
            Self::Internal => "the engine reached a state that should be impossible",
        }
    }

    /// Returns the remedy in one line.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::BadRequest => "fix the places in the request that `errors` names",
            Self::InvalidWorkflow => "fix the places in the document that `errors` names",
            Self::UnknownAgent => "name a configured agent, or pass the workspace",
            Self::BadWorkspace => "create the directory, or pass another workspace",
            Self::UnaskedOutput => {
                "send outputs under the `requestId`, `key` or `stepId` of a request"
            }
            Self::UnknownName => {
                "pass the value in `vars` (with a new `runId`), or guard the step with an `if` that tests `exists`"
            }
            Self::NotAnArray => {
                "let the path lead to an array, with a new `runId`; `results` in the reply shows what is there"
            }
            Self::TooLarge => "pass large data in files, and name only the parts that are needed",
            Self::ExecFailed => "read `stderr` in the step's result, fix the cause, and call again",
            Self::AgentFailed => "read the message, fix the cause, and resume the run",
            Self::AgentOutputSchemaFailed => {
                "ask again: `raymond resume` gives a run of `raymond run` new attempts; a caller uses a new `runId` and the `results` of the reply"
            }
            Self::WhileNotConverged => {
                "raise `maxIters` (to 5 at most) or set `onMaxIters: \"continue\"`, with a new `runId`; the same document with the `results` of the reply fails again"
            }
            Self::RunMismatch => {
                "send the document, `vars` and schemas from the start, or choose a new `runId`"
            }
            Self::RunLocked => "wait for the other call to end, and call again",
            Self::StoreFailed => {
                "read the message, check disk space and permissions, and call again"
            }
            Self::Cancelled => {
                "call again: with a `runId` no finished step is repeated; a cancelled run needs a new `runId`"
            }
            Self::Internal => "report the message; a run with a `runId` can continue",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_is_listed_once() {
        let codes: BTreeSet<ErrorCode> = ErrorCode::ALL.into_iter().collect();
        let words: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!((codes.len(), words.len()), (ErrorCode::ALL.len(), ErrorCode::ALL.len()));
        // A variant added after the last one makes the list too short.
        assert_eq!(codes.last().map(|code| *code as usize), Some(ErrorCode::ALL.len() - 1));
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::named(code.as_str()), Some(code));
            // The journal must use the word that callers read.
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(format!("{code:>20}"), format!("{:>20}", code.as_str()));
        }
        assert_eq!(ErrorCode::named("Internal"), None);
    }

    #[test]
    fn every_code_has_its_own_cause_and_remedy() {
        let causes: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.cause()).collect();
        let remedies: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.remedy()).collect();
        assert_eq!((causes.len(), remedies.len()), (ErrorCode::ALL.len(), ErrorCode::ALL.len()));
    }

    #[test]
    fn words_are_stable() {
        let words: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        let expected = "bad_request unknown_agent bad_workspace invalid_workflow \
            run_locked run_mismatch unasked_output unknown_name not_an_array \
            too_large exec_failed agent_failed agent_output_schema_failed while_not_converged \
            store_failed cancelled internal";
        assert_eq!(words, expected.split_whitespace().collect::<Vec<_>>());
    }
}
