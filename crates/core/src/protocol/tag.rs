//! The six tags of the transition protocol, as values.
//!
//! Names are as written: resolving them needs the definition, and is done in [`crate::machine`].
//! The serialized form is part of the journal format.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::few::Few;
use crate::value::Value;

/// The name of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TagName {
    /// Continue in the same session.
    Goto,
    /// Continue in a fresh session.
    Reset,
    /// Branch the session, and return with a result.
    Call,
    /// Start a fresh session, and return with a result.
    Function,
    /// Spawn a worker.
    Fork,
    /// Return to the caller, or end the agent.
    Result,
}

impl TagName {
    /// All tags, in the order in which they are explained.
    pub const ALL: [Self; 6] =
        [Self::Goto, Self::Reset, Self::Call, Self::Function, Self::Fork, Self::Result];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Goto => "goto",
            Self::Reset => "reset",
            Self::Call => "call",
            Self::Function => "function",
            Self::Fork => "fork",
            Self::Result => "result",
        }
    }
}

impl fmt::Display for TagName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A well-formed tag. Targets are trimmed but not resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tag {
    /// `<goto>TARGET</goto>`
    Goto {
        target: String,
        /// The input of the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
    /// `<reset>TARGET</reset>`
    Reset {
        target: String,
        /// The input of the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The new working directory, as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cd: Option<String>,
        /// Whether pending returns are dropped.
        #[serde(default, skip_serializing_if = "Stack::is_keep")]
        stack: Stack,
    },
    /// `<call return="R">TARGET</call>`
    Call(Invoke),
    /// `<function return="R">TARGET</function>`
    Function(Invoke),
    /// `<fork next="N">TARGET</fork>`
    Fork {
        /// The first state of the worker.
        target: String,
        /// The state in which the parent continues. It may be absent only if a `goto` beside the
        /// forks names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
        /// The worker's working directory, as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cd: Option<String>,
        /// The input of the worker's first state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The worker's template variables.
        #[serde(default, skip_serializing_if = "Few::is_empty")]
        attributes: Few<String, Value>,
    },
    /// `<result>PAYLOAD</result>`
    Result {
        /// The text between the tags, byte for byte.
        payload: Value,
    },
}

/// The common parts of `call` and `function`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invoke {
    pub target: String,
    /// The state that receives the result.
    #[serde(rename = "return")]
    pub return_to: String,
    /// The input of the callee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The model until the call returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The effect of `reset` on pending returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stack {
    #[default]
    Keep,
    /// `stack="clear"`: pending returns are dropped.
    Clear,
}

impl Stack {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
}

impl Tag {
    pub const fn name(&self) -> TagName {
        match self {
            Self::Goto { .. } => TagName::Goto,
            Self::Reset { .. } => TagName::Reset,
            Self::Call(_) => TagName::Call,
            Self::Function(_) => TagName::Function,
            Self::Fork { .. } => TagName::Fork,
            Self::Result { .. } => TagName::Result,
        }
    }

    /// Returns the state between the tags; `None` for a result.
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::Goto { target, .. } | Self::Reset { target, .. } | Self::Fork { target, .. } => {
                Some(target)
            }
            Self::Call(invoke) | Self::Function(invoke) => Some(&invoke.target),
            Self::Result { .. } => None,
        }
    }

    /// Returns the directory as written.
    pub fn cd(&self) -> Option<&str> {
        match self {
            Self::Reset { cd, .. } | Self::Fork { cd, .. } => cd.as_deref(),
            Self::Goto { .. } | Self::Call(_) | Self::Function(_) | Self::Result { .. } => None,
        }
    }
}
