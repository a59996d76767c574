//! Why a message could not be taken as a transition.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{BackendName, StateName};

use super::reading::Malformed;
use super::tag::TagName;
use crate::text::{excerpt, listed};

/// What is wrong with a message. Texts in it are short: long ones are cut where they are observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// There is no tag, or only tags in code beside other text.
    NoTag,
    /// There are several, and they are not one fork.
    SeveralTags {
        /// The tags found, the first few of them.
        tags: Vec<TagName>,
        /// How many there are.
        count: usize,
    },
    /// There are only malformed ones.
    Malformed(Vec<Malformed>),
    /// A target, `return`, `next` or `goto` names no state.
    Unresolved {
        /// The tag that named it.
        tag: TagName,
        /// The name as written.
        target: String,
        /// Why it does not resolve, with the nearest name where there is one.
        why: String,
    },
    /// Forks, and the `goto` beside them, name different next states.
    NextDiffers {
        /// The states they name, resolved.
        states: Vec<String>,
    },
    /// A `cd` leads nowhere.
    NoDirectory {
        /// The tag that named it.
        tag: TagName,
        /// The directory as written.
        cd: String,
    },
    /// The policy of the state does not allow it.
    Forbidden {
        /// The tag that is refused.
        tag: TagName,
        /// Its target; none when the tag itself is not allowed.
        target: Option<String>,
    },
    /// A state would go on in a conversation that another backend holds.
    OtherBackend {
        /// The tag that leads there.
        tag: TagName,
        /// The state: a target, or where it goes on after a `return` or `next`.
        state: StateName,
        /// The backend that answers it.
        answers: BackendName,
        /// The backend that holds the conversation.
        holds: BackendName,
    },
    /// The backend of the conversation cannot branch it, which `call` needs.
    NoBranch {
        /// Which backend.
        backend: BackendName,
    },
    /// The client denied a tool, and the state says `on_denied: remind`.
    Denied {
        /// The tools.
        tools: Vec<String>,
    },
}

impl Fault {
    /// What would work instead, where that does not depend on the policy.
    pub(crate) fn instead(&self) -> Option<String> {
        match self {
            Self::OtherBackend { holds, .. } => Some(format!(
                "enter it by <reset>, <function> or <fork>, or name a state that {holds} answers"
            )),
            Self::NoBranch { .. } => Some(
                "use <function> for work that needs nothing of it, or <goto> to go on in it".into(),
            ),
            Self::NoTag
            | Self::SeveralTags { .. }
            | Self::Malformed(_)
            | Self::Unresolved { .. }
            | Self::NextDiffers { .. }
            | Self::NoDirectory { .. }
            | Self::Forbidden { .. }
            | Self::Denied { .. } => None,
        }
    }
}

/// How much of a foreign text is shown.
const SHOWN: usize = 80;
/// How many names or tags are shown.
const SHOWN_NAMES: usize = 6;

/// One line for screens.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTag => f.write_str("no tag"),
            Self::SeveralTags { tags, count } => {
                write!(f, "{count} tags where one is due: {}", names(tags, *count))
            }
            Self::Malformed(tags) => match tags.split_first() {
                None => f.write_str("malformed tag"),
                Some((first, [])) => first.fmt(f),
                Some((first, others)) => write!(f, "{first} (and {} more)", others.len()),
            },
            Self::Unresolved { tag, why, .. } => write!(f, "<{tag}>: {why}"),
            Self::NextDiffers { states } => {
                write!(f, "forks go on at different states: {}", listed(states, SHOWN_NAMES, ", "))
            }
            Self::NoDirectory { tag, cd } => {
                write!(f, "<{tag}>: no directory {:?}", excerpt(cd, SHOWN))
            }
            Self::Forbidden { tag, target: None } => {
                write!(f, "<{tag}> is not allowed here")
            }
            Self::Forbidden { tag, target: Some(target) } => {
                write!(f, "<{tag}> to {:?} is not allowed here", excerpt(target, SHOWN))
            }
            Self::OtherBackend { tag, state, answers, holds } => write!(
                f,
                "<{tag}>: {state} is answered by {answers}, and {holds} holds the conversation"
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

/// `goto, result, …`: the first few of `count` tags.
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
        check(&Fault::NoTag, "no tag");
        check(
            &Fault::SeveralTags { tags: vec![TagName::Goto; 7], count: 9 },
            "9 tags where one is due: goto, goto, goto, goto, goto, goto, …",
        );
        check(
            &Fault::Malformed(vec![malformed.clone()]),
            "malformed <call>: attribute `return` is missing",
        );
        check(
            &Fault::Malformed(vec![malformed; 3]),
            "malformed <call>: attribute `return` is missing (and 2 more)",
        );
        check(&Fault::Malformed(Vec::new()), "malformed tag");
        check(
            &Fault::Unresolved {
                tag: TagName::Goto,
                target: "X".to_owned(),
                why: "there is no state \"X\"".to_owned(),
            },
            "<goto>: there is no state \"X\"",
        );
        check(
            &Fault::NextDiffers { states: vec!["A.md".to_owned(), "B.md".to_owned()] },
            "forks go on at different states: A.md, B.md",
        );
        check(
            &Fault::NoDirectory { tag: TagName::Reset, cd: "../x".to_owned() },
            "<reset>: no directory \"../x\"",
        );
        let forbidden = |target: Option<&str>| Fault::Forbidden {
            tag: TagName::Fork,
            target: target.map(str::to_owned),
        };
        check(&forbidden(None), "<fork> is not allowed here");
        check(&forbidden(Some("A")), "<fork> to \"A\" is not allowed here");
        check(
            &Fault::OtherBackend {
                tag: TagName::Goto,
                state: "B.md".into(),
                answers: "codex".into(),
                holds: "claude".into(),
            },
            "<goto>: B.md is answered by codex, and claude holds the conversation",
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
