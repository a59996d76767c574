//! The stable codes of single problems in a document, a request or an answer.
//!
//! An [`ErrorCode`](super::ErrorCode) describes how a call ended; a [`ProblemCode`] describes what
//! is wrong at one place. The list is closed, and the book prints it. Messages may change, but
//! codes may not. [`ProblemCode::cause`] explains every code.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The stable code of one problem; [`ProblemCode::cause`] explains each.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    NotJson,
    NotUtf8,
    DuplicateKey,
    TooDeep,
    TooLarge,
    Unreadable,
    WrongType,
    UnknownKey,
    MissingKey,
    ConflictingKeys,
    UnknownKind,
    UnknownWord,
    OutOfRange,
    BadId,
    DuplicateId,
    TooManySteps,
    BadName,
    BadText,
    BadPath,
    UnknownNamespace,
    UnknownLocal,
    TooEarly,
    Injection,
    UnknownStep,
    UnknownResult,
    UnusableStep,
    EscapingPath,
    MissingFile,
    BadReference,
    MissingSchema,
    UnreadableSchema,
    CircularSchema,
    InvalidSchema,
    MixedDrafts,
    UnaskedOutput,
    StaleOutput,
    // Old journals contain problems of schemas without a code, so the default must stay this one.
    #[default]
    InvalidOutput,
    MoreProblems,
    Internal,
}

impl ProblemCode {
    /// All codes, in the order of the checks: text, document, schemas, outputs.
    pub const ALL: [Self; 39] = [
        Self::NotJson,
        Self::NotUtf8,
        Self::DuplicateKey,
        Self::TooDeep,
        Self::TooLarge,
        Self::Unreadable,
        Self::WrongType,
        Self::UnknownKey,
        Self::MissingKey,
        Self::ConflictingKeys,
        Self::UnknownKind,
        Self::UnknownWord,
        Self::OutOfRange,
        Self::BadId,
        Self::DuplicateId,
        Self::TooManySteps,
        Self::BadName,
        Self::BadText,
        Self::BadPath,
        Self::UnknownNamespace,
        Self::UnknownLocal,
        Self::TooEarly,
        Self::Injection,
        Self::UnknownStep,
        Self::UnknownResult,
        Self::UnusableStep,
        Self::EscapingPath,
        Self::MissingFile,
        Self::BadReference,
        Self::MissingSchema,
        Self::UnreadableSchema,
        Self::CircularSchema,
        Self::InvalidSchema,
        Self::MixedDrafts,
        Self::UnaskedOutput,
        Self::StaleOutput,
        Self::InvalidOutput,
        Self::MoreProblems,
        Self::Internal,
    ];

    // The words must be those of serde, because a journal and a reply have to agree.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::NotUtf8 => "not_utf8",
            Self::DuplicateKey => "duplicate_key",
            Self::TooDeep => "too_deep",
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::WrongType => "wrong_type",
            Self::UnknownKey => "unknown_key",
            Self::MissingKey => "missing_key",
            Self::ConflictingKeys => "conflicting_keys",
            Self::UnknownKind => "unknown_kind",
            Self::UnknownWord => "unknown_word",
            Self::OutOfRange => "out_of_range",
            Self::BadId => "bad_id",
            Self::DuplicateId => "duplicate_id",
            Self::TooManySteps => "too_many_steps",
            Self::BadName => "bad_name",
            Self::BadText => "bad_text",
            Self::BadPath => "bad_path",
            Self::UnknownNamespace => "unknown_namespace",
            Self::UnknownLocal => "unknown_local",
            Self::TooEarly => "too_early",
            Self::Injection => "injection",
            Self::UnknownStep => "unknown_step",
            Self::UnknownResult => "unknown_result",
            Self::UnusableStep => "unusable_step",
            Self::EscapingPath => "escaping_path",
            Self::MissingFile => "missing_file",
            Self::BadReference => "bad_reference",
            Self::MissingSchema => "missing_schema",
            Self::UnreadableSchema => "unreadable_schema",
            Self::CircularSchema => "circular_schema",
            Self::InvalidSchema => "invalid_schema",
            Self::MixedDrafts => "mixed_drafts",
            Self::UnaskedOutput => "unasked_output",
            Self::StaleOutput => "stale_output",
            Self::InvalidOutput => "invalid_output",
            Self::MoreProblems => "more_problems",
            Self::Internal => "internal",
        }
    }

    /// Returns the cause in one line.
    pub fn cause(self) -> &'static str {
        match self {
            Self::NotJson => "the text is not strict JSON (RFC 8259)",
            Self::NotUtf8 => "the text is not UTF-8",
            Self::DuplicateKey => "a key appears twice in one object",
            Self::TooDeep => "JSON, steps or schemas are nested deeper than the limit",
            Self::TooLarge => {
                "the text is too long, or one value would be checked against too many subschemas"
            }
            Self::Unreadable => "the file cannot be opened or read",
            Self::WrongType => "the value is of another JSON type than this place takes",
            Self::UnknownKey => "no object of this sort has this key",
            Self::MissingKey => "a required key is missing",
            Self::ConflictingKeys => {
                "keys exclude each other, or one needs another key or value beside it"
            }
            Self::UnknownKind => "this `kind` of step does not exist",
            Self::UnknownWord => "this key does not accept the word",
            Self::OutOfRange => "the number is not whole, or not within its limits",
            Self::BadId => {
                "an id is empty, too long, or has a character that is not allowed in ids"
            }
            Self::DuplicateId => "two steps of the document have the same id",
            Self::TooManySteps => "the document has more steps than the limit",
            Self::BadName => {
                "the name of a local, a file contract, an environment variable or a program is not allowed"
            }
            Self::BadText => "the text contains a NUL character, which no program can receive",
            Self::BadPath => "a path or an expression is malformed; a valid path is `$.vars.a[0]`",
            Self::UnknownNamespace => {
                "a path begins with something other than `vars`, `results` or `locals`"
            }
            Self::UnknownLocal => "no forEach around the step binds this local",
            Self::TooEarly => "`env` of the document names a value that exists only inside steps",
            Self::Injection => "the output of a step is in `shell` or `cmd`, where it would run",
            Self::UnknownStep => "a path or `inputFrom` names a step that does not exist",
            Self::UnknownResult => "a path names a result that its step never has, such as `json`",
            Self::UnusableStep => {
                "`inputFrom` names a step without JSON, or one that does not run before this step"
            }
            Self::EscapingPath => {
                "the path of a file is empty, absolute, or leads out of the workspace"
            }
            Self::MissingFile => "a file that a step reads, or should have written, does not exist",
            Self::BadReference => {
                "a `$ref` is a path or a URL, or leads to nothing in its own document"
            }
            Self::MissingSchema => "no directory of schemas has a schema of this name",
            Self::UnreadableSchema => "the file of a named schema cannot be read, or is not JSON",
            Self::CircularSchema => "a schema refers to itself without descending into the value",
            Self::InvalidSchema => "this schema is not valid in its draft, or its draft is unknown",
            Self::MixedDrafts => "schemas that belong together are of different drafts",
            Self::UnaskedOutput => "no agent step, or only a future attempt, asks for this output",
            Self::StaleOutput => "an output is for an attempt that is over; it was ignored",
            Self::InvalidOutput => "an answer, an input or an output does not match its schema",
            Self::MoreProblems => "there are more problems than the list shows",
            Self::Internal => "the engine reached a state that should be impossible",
        }
    }

    /// Returns whether a schema rejected a value; such problems are journalled without a code.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    pub(super) fn is_of_value(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests;
