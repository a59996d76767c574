//! The six tags, well formed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::few::Few;
use crate::value::Value;

/// Which tag it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TagName {
    /// Go on in the same session.
    Goto,
    /// Go on in a fresh session.
    Reset,
    /// Branch the session, and come back with a result.
    Call,
    /// Start a fresh session, and come back with a result.
    Function,
    /// Spawn a worker.
    Fork,
    /// Return to the caller, or end.
    Result,
}

impl TagName {
    /// All six, in the order in which they are explained.
    pub const ALL: [Self; 6] =
        [Self::Goto, Self::Reset, Self::Call, Self::Function, Self::Fork, Self::Result];

    /// The name as it stands in a tag.
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

/// A well-formed tag. Targets are as written (trimmed), not yet resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tag {
    /// `<goto>TARGET</goto>`
    Goto {
        /// Where to.
        target: String,
        /// Handed to the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
    /// `<reset>TARGET</reset>`
    Reset {
        /// Where to.
        target: String,
        /// Handed to the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The new working directory, as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cd: Option<String>,
        /// What happens to pending returns.
        #[serde(default, skip_serializing_if = "Stack::is_keep")]
        stack: Stack,
    },
    /// `<call return="R">TARGET</call>`
    Call(Invoke),
    /// `<function return="R">TARGET</function>`
    Function(Invoke),
    /// `<fork next="N">TARGET</fork>`
    Fork {
        /// Where the worker starts.
        target: String,
        /// Where the parent goes on; only a `goto` beside the forks may stand in for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
        /// The worker's working directory, as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cd: Option<String>,
        /// Handed to the worker's first state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The worker's template variables.
        #[serde(default, skip_serializing_if = "Few::is_empty")]
        attributes: Few<String, Value>,
    },
    /// `<result>PAYLOAD</result>`
    Result {
        /// Byte for byte what stood between the tags.
        payload: Value,
    },
}

/// What `call` and `function` have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invoke {
    /// What is called.
    pub target: String,
    /// Where its result goes.
    #[serde(rename = "return")]
    pub return_to: String,
    /// Handed to the callee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The model until the frame returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What `reset` does to pending returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stack {
    /// They stay.
    #[default]
    Keep,
    /// `stack="clear"`: they are dropped.
    Clear,
}

impl Stack {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
}

impl Tag {
    /// Which of the six it is.
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

    /// The state it names between its tags; a result names none.
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::Goto { target, .. } | Self::Reset { target, .. } | Self::Fork { target, .. } => {
                Some(target)
            }
            Self::Call(invoke) | Self::Function(invoke) => Some(&invoke.target),
            Self::Result { .. } => None,
        }
    }

    /// The directory it names, as written.
    pub fn cd(&self) -> Option<&str> {
        match self {
            Self::Reset { cd, .. } | Self::Fork { cd, .. } => cd.as_deref(),
            Self::Goto { .. } | Self::Call(_) | Self::Function(_) | Self::Result { .. } => None,
        }
    }
}
