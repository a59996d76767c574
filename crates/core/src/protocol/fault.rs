//! Why a message could not be taken as a transition.

use serde::{Deserialize, Serialize};

use super::reading::Malformed;
use super::tag::TagName;

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
    /// The client denied a tool, and the state says `on_denied: remind`.
    Denied {
        /// The tools.
        tools: Vec<String>,
    },
}
