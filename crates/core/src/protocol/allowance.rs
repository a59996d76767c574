//! The tags that a state may emit, in the form that a reminder lists.
//!
//! This is plain data. It is made from a policy in [`crate::workflow`], which this module does not
//! know.

use super::tags::{Need, TagName};

/// The tags that are allowed at one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// The allowed tags, each once, in the order in which they are shown.
    pub choices: Vec<Choice>,
    /// All states of the scope, for the tags that may name any of them.
    pub states: Vec<String>,
}

/// One allowed tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub tag: TagName,
    /// The states that the tag may name.
    pub routes: Routes,
}

/// The states that a tag may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Routes {
    /// Any state of the scope. Also used for `result`, which names no state.
    Any,
    Only(Vec<Route>),
}

/// One allowed combination of states; an absent name allows any state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Route {
    /// The state between the tags.
    pub target: Option<String>,
    /// `return` of `call` and `function`, `next` of `fork`; ignored for other tags.
    pub then: Option<String>,
    /// The `wait` that a `goto` needs.
    pub wait: Option<Need>,
}

impl Allowance {
    /// Returns the allowance without a policy: all tags, and every state.
    pub fn everything(states: Vec<String>) -> Self {
        let any = |tag| Choice { tag, routes: Routes::Any };
        Self { choices: TagName::WITHOUT_POLICY.map(any).to_vec(), states }
    }
}
