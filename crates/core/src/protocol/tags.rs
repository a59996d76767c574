//! The tags of the transition protocol, one file each.
//!
//! The file of a tag has its specification: what is between the tags, which attributes it has, and
//! where the conversation continues. Policies, reminders and checks follow from it. How a tag is
//! taken is in [`crate::machine::tags`]. Names are as written: resolving them needs the definition.
//!
//! A new tag needs its variants in this file, a file with its specification in `protocol/tags`, and
//! a file in `machine/tags` that takes the tag. Tests then ask for its rules in the reference
//! (`testkit/reference/tags.rs`) and for a golden journal.

mod ask;
pub(super) mod attributes;
mod call;
mod entity;
mod fork;
mod function;
mod gather;
mod goto;
mod need;
mod problem;
mod reset;
mod result;
mod when;

pub use ask::{AskTimeout, Otherwise, Question};
pub use attributes::{BorrowedTag, TagContent};
pub(in crate::protocol) use entity::encode;
pub use need::Need;
pub use problem::TagProblem;
pub use when::When;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::few::Few;
use crate::time::Span;
use crate::value::{Hash, Value};

use attributes::Attributes;

/// The specification of a tag.
#[derive(Debug)]
pub struct TagSpec {
    pub body: Body,
    /// The attribute that names a second state, if the tag has one. The conversation of the agent
    /// continues there.
    pub follower: Option<Follower>,
    /// Whether the conversation of the agent continues at the target.
    pub continues_at_target: bool,
    /// The names of its attributes. The variables of a fork may have any other name.
    pub attributes: &'static [&'static str],
    /// A rule that a reminder adds if the tag is allowed.
    pub note: Option<&'static str>,
    /// How it is written, the conversation of its target `S`, and what follows.
    pub cheat_sheet: [&'static str; 3],
    /// Reads the tag from its attributes and its body. Attributes that stay are unknown.
    read: for<'a> fn(&mut Attributes<'a>, &'a str) -> Result<TagContent<'a>, TagProblem<'a>>,
    /// Returns the tag with these names and nothing else, if that is enough to write it.
    implicit: fn(String, Option<String>) -> Option<Tag>,
}

/// The text between the tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// The name of a state.
    Target,
    /// Any text. A reminder shows this placeholder.
    Payload(&'static str),
}

/// An attribute that names a second state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follower {
    pub attribute: &'static str,
    /// The word that a reminder shows for any state.
    pub placeholder: &'static str,
    /// The advice for a state of another backend: `{advice} a state that claude answers`.
    pub advice: &'static str,
}

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
    /// Ask a person.
    Ask,
    /// Return to the caller, or end the agent.
    Result,
}

impl TagName {
    /// All tags, in the order in which they are explained.
    pub const ALL: [Self; 7] =
        [Self::Goto, Self::Reset, Self::Call, Self::Function, Self::Fork, Self::Ask, Self::Result];
    /// The tags that a prompt without a policy may emit. An agent that works at night must not
    /// learn that it could ask, so a policy has to name `ask`.
    pub const WITHOUT_POLICY: [Self; 6] =
        [Self::Goto, Self::Reset, Self::Call, Self::Function, Self::Fork, Self::Result];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Goto => "goto",
            Self::Reset => "reset",
            Self::Call => "call",
            Self::Function => "function",
            Self::Fork => "fork",
            Self::Ask => "ask",
            Self::Result => "result",
        }
    }

    pub const fn spec(self) -> &'static TagSpec {
        match self {
            Self::Goto => &goto::SPEC,
            Self::Reset => &reset::SPEC,
            Self::Call => &call::SPEC,
            Self::Function => &function::SPEC,
            Self::Fork => &fork::SPEC,
            Self::Ask => &ask::SPEC,
            Self::Result => &result::SPEC,
        }
    }

    /// Returns the tag with these names and nothing else, if that is enough to write it.
    pub fn implicit(self, target: String, follower: Option<String>) -> Option<Tag> {
        (self.spec().implicit)(target, follower)
    }
}

impl fmt::Display for TagName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A well-formed tag. Targets are trimmed but not resolved. `N` is the type of names, `T` of texts:
/// a tag that was just found borrows both. The serialized form is part of the journal format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// Written out, because serde would also require `Default` of the types of optional fields.
#[serde(bound(deserialize = "N: Deserialize<'de> + Ord, T: Deserialize<'de>"))]
pub enum Tag<N: Ord = String, T = Value> {
    /// `<goto>TARGET</goto>`
    Goto {
        target: N,
        /// The input of the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<T>,
    },
    /// `<reset>TARGET</reset>`
    Reset {
        target: N,
        /// The input of the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<T>,
        /// The new working directory, as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cd: Option<N>,
        /// Whether pending returns are dropped.
        #[serde(default, skip_serializing_if = "Stack::is_keep")]
        stack: Stack,
    },
    /// `<call return="R">TARGET</call>`
    Call(Invoke<N, T>),
    /// `<function return="R">TARGET</function>`
    Function(Invoke<N, T>),
    /// `<fork next="N">TARGET</fork>`
    Fork {
        /// The first state of the worker.
        target: N,
        /// The state in which the parent continues. It may be absent only if a `goto` beside the
        /// forks names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<N>,
        /// The worker's working directory, as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cd: Option<N>,
        /// The input of the worker's first state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<T>,
        /// The worker's template variables.
        #[serde(default, skip_serializing_if = "Few::is_empty")]
        attributes: Few<N, T>,
    },
    /// `<result>PAYLOAD</result>`
    Result {
        /// The text between the tags, byte for byte.
        payload: T,
        #[serde(default, skip_serializing_if = "ResultStatus::is_ok")]
        status: ResultStatus,
    },
    /// `<ask next="S">QUESTION</ask>`
    Ask(Question<N, T>),
    /// An `ask` with its answer, or without one in time. It is never read from a text.
    // Kept if the transition cannot be taken, so that the question is not asked again.
    Answered { next: N, answer: T },
    /// A `goto` or a `reset` with `after` or `at`.
    // A variant and not a field of these tags: a release that does not know it must not take the
    // transition at once.
    Later { tag: Box<Self>, when: When },
    /// A `goto` with `wait`, beside forks.
    // A variant for the same reason.
    Gather {
        target: N,
        need: Need,
        /// The longest wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Span>,
        /// The state to enter if the wait cannot be met or takes too long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        then: Option<N>,
    },
}

/// The common parts of `call` and `function`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "N: Deserialize<'de>, T: Deserialize<'de>"))]
pub struct Invoke<N = String, T = Value> {
    pub target: N,
    /// The state that receives the result.
    #[serde(rename = "return")]
    pub return_to: N,
    /// The input of the callee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<T>,
    /// The model until the call returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<N>,
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

/// Whether a result is a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    #[default]
    Ok,
    /// `status="failed"`: the payload is the reason.
    Failed,
}

impl ResultStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub(crate) fn is_ok(&self) -> bool {
        *self == Self::Ok
    }
}

impl<N: Ord, T> Tag<N, T> {
    pub const fn name(&self) -> TagName {
        match self {
            Self::Goto { .. } | Self::Gather { .. } => TagName::Goto,
            Self::Reset { .. } => TagName::Reset,
            Self::Call(_) => TagName::Call,
            Self::Function(_) => TagName::Function,
            Self::Fork { .. } => TagName::Fork,
            Self::Ask(_) | Self::Answered { .. } => TagName::Ask,
            Self::Result { .. } => TagName::Result,
            Self::Later { tag, .. } => tag.name(),
        }
    }

    /// Returns the state between the tags; `None` for a result or a question.
    pub fn target(&self) -> Option<&N> {
        match self {
            Self::Goto { target, .. }
            | Self::Reset { target, .. }
            | Self::Fork { target, .. }
            | Self::Gather { target, .. } => Some(target),
            Self::Call(invoke) | Self::Function(invoke) => Some(&invoke.target),
            Self::Ask(_) | Self::Answered { .. } | Self::Result { .. } => None,
            Self::Later { tag, .. } => tag.target(),
        }
    }
}

impl Tag {
    /// Returns the directory as written.
    pub fn cd(&self) -> Option<&str> {
        match self {
            Self::Reset { cd, .. } | Self::Fork { cd, .. } => cd.as_deref(),
            Self::Later { tag, .. } => tag.cd(),
            Self::Goto { .. }
            | Self::Call(_)
            | Self::Function(_)
            | Self::Ask(_)
            | Self::Answered { .. }
            | Self::Result { .. }
            | Self::Gather { .. } => None,
        }
    }

    /// Returns how many workers the tag waits for, if it waits for workers.
    pub const fn need(&self) -> Option<Need> {
        if let Self::Gather { need, .. } = self { Some(*need) } else { None }
    }

    /// Returns the states that a kept transition may enter.
    pub fn kept_targets(&self) -> impl Iterator<Item = &str> {
        let [first, second] = match self {
            Self::Gather { target, then, .. } => [Some(target.as_str()), then.as_deref()],
            Self::Ask(question) => [Some(question.next.as_str()), question.then()],
            Self::Answered { next, .. } => [Some(next.as_str()), None],
            Self::Goto { .. }
            | Self::Reset { .. }
            | Self::Call(_)
            | Self::Function(_)
            | Self::Fork { .. }
            | Self::Result { .. }
            | Self::Later { .. } => [self.target().map(String::as_str), None],
        };
        first.into_iter().chain(second)
    }
}

impl TagContent<'_> {
    /// Converts into an owned tag. Long texts go through `store`.
    pub fn keep<E>(self, store: &mut dyn FnMut(&[u8]) -> Result<Hash, E>) -> Result<Tag, E> {
        let mut keep = |text: Cow<'_, str>| Value::keep(&text, store);
        Ok(match self {
            Self::Goto { target, input } => {
                Tag::Goto { target: target.into_owned(), input: input.map(keep).transpose()? }
            }
            Self::Reset { target, input, cd, stack } => Tag::Reset {
                target: target.into_owned(),
                input: input.map(keep).transpose()?,
                cd: cd.map(Cow::into_owned),
                stack,
            },
            Self::Call(invoke) => Tag::Call(invoke.keep(keep)?),
            Self::Function(invoke) => Tag::Function(invoke.keep(keep)?),
            Self::Fork { target, next, cd, input, attributes } => Tag::Fork {
                target: target.into_owned(),
                next: next.map(Cow::into_owned),
                cd: cd.map(Cow::into_owned),
                input: input.map(&mut keep).transpose()?,
                attributes: attributes
                    .into_iter()
                    .map(|(name, text)| Ok((name.into_owned(), keep(text)?)))
                    .collect::<Result<Few<_, _>, E>>()?,
            },
            Self::Ask(question) => Tag::Ask(question.keep(keep)?),
            Self::Answered { next, answer } => {
                Tag::Answered { next: next.into_owned(), answer: keep(answer)? }
            }
            Self::Result { payload, status } => Tag::Result { payload: keep(payload)?, status },
            Self::Later { tag, when } => Tag::Later { tag: Box::new((*tag).keep(store)?), when },
            Self::Gather { target, need, timeout, then } => Tag::Gather {
                target: target.into_owned(),
                need,
                timeout,
                then: then.map(Cow::into_owned),
            },
        })
    }
}

impl<'a> Invoke<Cow<'a, str>, Cow<'a, str>> {
    fn keep<E>(self, keep: impl FnOnce(Cow<'a, str>) -> Result<Value, E>) -> Result<Invoke, E> {
        Ok(Invoke {
            target: self.target.into_owned(),
            return_to: self.return_to.into_owned(),
            input: self.input.map(keep).transpose()?,
            model: self.model.map(Cow::into_owned),
        })
    }
}

impl<'a> Question<Cow<'a, str>, Cow<'a, str>> {
    fn keep<E>(self, keep: impl FnOnce(Cow<'a, str>) -> Result<Value, E>) -> Result<Question, E> {
        let timeout = self.timeout.map(|AskTimeout { after, otherwise }| {
            let otherwise = match otherwise {
                Otherwise::Then(state) => Otherwise::Then(state.into_owned()),
                Otherwise::Default(answer) => Otherwise::Default(answer.into_owned()),
            };
            AskTimeout { after, otherwise }
        });
        Ok(Question {
            next: self.next.into_owned(),
            text: keep(self.text)?,
            options: self.options.into_iter().map(Cow::into_owned).collect(),
            timeout,
        })
    }
}
