//! Faults: the reasons for which a message is not a usable transition.
//!
//! A fault can be corrected by the agent, so it leads to a reminder ([`mod@super::reminder`]). A
//! failure ([`crate::failure`]) cannot. Faults are journalled.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{BackendName, StateName};

use super::reading::Malformed;
use super::tags::TagName;
use super::untagged::Untagged;
use crate::text::{counted, excerpt, listed};

/// A fault of a message. Its texts are short, because long ones are shortened where they are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The message has no tag, or only tags in code beside other text.
    NoTag(Untagged),
    /// The message has several tags that are not one fork.
    SeveralTags {
        /// The first few tags.
        tags: Vec<TagName>,
        /// The number of all tags.
        count: usize,
    },
    /// All tags are malformed.
    Malformed(Vec<Malformed>),
    /// A target, `return`, `next` or `goto` does not name a state.
    Unresolved {
        /// The tag that named it.
        tag: TagName,
        /// The attribute that has the name; `None` for the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attribute: Option<String>,
        /// The name as written.
        target: String,
        /// Why the name does not resolve, with the nearest name if there is one.
        why: String,
    },
    /// Forks, and the `goto` beside them, name different next states.
    NextDiffers {
        /// The resolved states.
        states: Vec<String>,
    },
    /// A `cd` names a directory that does not exist.
    NoDirectory {
        /// The tag that named it.
        tag: TagName,
        /// The directory as written.
        cd: String,
    },
    /// The policy of the state does not allow the tag.
    Forbidden {
        /// The tag that is refused.
        tag: TagName,
        /// Its target; `None` if the tag itself is not allowed.
        target: Option<String>,
        /// Its `return` or `next`, if the target would be allowed with another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        follower: Option<String>,
    },
    /// A state would continue a conversation of another backend.
    OtherBackend {
        /// The tag that names the state.
        tag: TagName,
        /// The state: a target, a `return` or a `next`.
        state: StateName,
        /// The backend that answers the state.
        answers: BackendName,
        /// The backend that has the conversation.
        holds: BackendName,
    },
    /// The backend of the conversation cannot branch it, which `call` needs.
    NoBranch { backend: BackendName },
    /// The client denied a tool, and the state has `on_denied: remind`.
    Denied { tools: Vec<String> },
}

impl Fault {
    /// Returns what would work instead, if it does not depend on the policy.
    pub(crate) fn instead(&self) -> Option<String> {
        match self {
            Self::OtherBackend { holds, .. } => Some(format!(
                "enter it by <reset>, <function> or <fork>, or name a state that {holds} answers"
            )),
            Self::NoBranch { .. } => Some(
                "use <function> for work that does not need it, or <goto> to continue it".into(),
            ),
            Self::SeveralTags { .. } => {
                Some("write one of them, or several forks with at most one goto".into())
            }
            Self::NoTag(_)
            | Self::Malformed(_)
            | Self::Unresolved { .. }
            | Self::NextDiffers { .. }
            | Self::NoDirectory { .. }
            | Self::Forbidden { .. }
            | Self::Denied { .. } => None,
        }
    }
}

/// Characters of a text from a message that are shown, so that a fault fits a line.
const SHOWN: usize = 80;
/// Names or tags that are shown, so that a fault fits a line.
const SHOWN_NAMES: usize = 6;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTag(untagged) => untagged.fmt(f),
            Self::SeveralTags { tags, count } => {
                write!(f, "{count} tags where one is expected: {}", names(tags, *count))
            }
            Self::Malformed(tags) => match tags.split_first() {
                // No decision makes an empty list, but a journal from elsewhere could contain one.
                None => f.write_str("malformed tag"),
                Some((first, [])) => first.fmt(f),
                Some((first, others)) => {
                    write!(f, "{first} (and {})", counted(others.len() as u64, "more mistake"))
                }
            },
            Self::Unresolved { tag, attribute: None, why, .. } => write!(f, "<{tag}>: {why}"),
            Self::Unresolved { tag, attribute: Some(attribute), why, .. } => {
                write!(f, "<{tag}>: attribute `{attribute}`: {why}")
            }
            Self::NextDiffers { states } => {
                write!(
                    f,
                    "forks continue at different states: {}",
                    listed(states, SHOWN_NAMES, ", ")
                )
            }
            Self::NoDirectory { tag, cd } => {
                write!(f, "<{tag}>: no directory {:?}", excerpt(cd, SHOWN))
            }
            Self::Forbidden { tag, target, follower } => {
                forbidden(f, *tag, target.as_deref(), follower.as_deref())
            }
            Self::OtherBackend { tag, state, answers, holds } => write!(
                f,
                "<{tag}>: {state} is answered by {answers}, but the conversation belongs to {holds}"
            ),
            Self::NoBranch { backend } => {
                write!(f, "<call>: {backend} cannot branch a conversation")
            }
            Self::Denied { tools } => {
                write!(f, "tools denied: {}", listed(tools, SHOWN_NAMES, ", "))
            }
        }
    }
}

fn forbidden(
    f: &mut fmt::Formatter<'_>,
    tag: TagName,
    target: Option<&str>,
    follower: Option<&str>,
) -> fmt::Result {
    write!(f, "<{tag}> ")?;
    if let Some(target) = target {
        write!(f, "to {:?} ", excerpt(target, SHOWN))?;
    }
    if let (Some(named), Some(spec)) = (follower, tag.spec().follower) {
        write!(f, "with {}={:?} ", spec.attribute, excerpt(named, SHOWN))?;
    }
    f.write_str("is not allowed here")
}

/// Lists the first few of `count` tags: `goto, result, …`.
pub(super) fn names(tags: &[TagName], count: usize) -> String {
    let shown: Vec<&str> = tags.iter().take(SHOWN_NAMES).map(|tag| tag.as_str()).collect();
    let more = if count > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fault: &Fault, expected: &str) {
        assert_eq!(fault.to_string(), expected);
    }

    #[test]
    fn a_fault_is_one_short_line() {
        let malformed =
            Malformed { tag: TagName::Call, why: "attribute `return` is missing".to_owned() };
        check(&Fault::NoTag(Untagged::default()), "no tag: the output is empty");
        check(
            &Fault::SeveralTags { tags: vec![TagName::Goto; 7], count: 9 },
            "9 tags where one is expected: goto, goto, goto, goto, goto, goto, …",
        );
        check(
            &Fault::Malformed(vec![malformed.clone()]),
            "malformed <call>: attribute `return` is missing",
        );
        check(
            &Fault::Malformed(vec![malformed; 3]),
            "malformed <call>: attribute `return` is missing (and 2 more mistakes)",
        );
        check(&Fault::Malformed(Vec::new()), "malformed tag");
    }

    #[test]
    fn fault_of_a_name_shows_its_position() {
        let unresolved = |tag, attribute: Option<&str>| Fault::Unresolved {
            tag,
            attribute: attribute.map(str::to_owned),
            target: "X".to_owned(),
            why: "there is no state \"X\"".to_owned(),
        };
        check(&unresolved(TagName::Goto, None), "<goto>: there is no state \"X\"");
        check(
            &unresolved(TagName::Call, Some("return")),
            "<call>: attribute `return`: there is no state \"X\"",
        );
        check(
            &Fault::NextDiffers { states: vec!["A.md".to_owned(), "B.md".to_owned()] },
            "forks continue at different states: A.md, B.md",
        );
        check(
            &Fault::NoDirectory { tag: TagName::Reset, cd: "../x".to_owned() },
            "<reset>: no directory \"../x\"",
        );
        let forbidden = |target: Option<&str>, follower: Option<&str>| Fault::Forbidden {
            tag: TagName::Fork,
            target: target.map(str::to_owned),
            follower: follower.map(str::to_owned),
        };
        check(&forbidden(None, None), "<fork> is not allowed here");
        check(&forbidden(Some("A"), None), "<fork> to \"A\" is not allowed here");
        check(
            &forbidden(Some("A"), Some("B")),
            "<fork> to \"A\" with next=\"B\" is not allowed here",
        );
        check(
            &Fault::OtherBackend {
                tag: TagName::Goto,
                state: "B.md".into(),
                answers: "codex".into(),
                holds: "claude".into(),
            },
            "<goto>: B.md is answered by codex, but the conversation belongs to claude",
        );
        check(
            &Fault::NoBranch { backend: "codex".into() },
            "<call>: codex cannot branch a conversation",
        );
        check(
            &Fault::Denied { tools: vec!["Bash(cargo test)".to_owned(), "WebFetch".to_owned()] },
            "tools denied: Bash(cargo test), WebFetch",
        );
    }
}
