//! What a state may emit, as a reminder lists it: plain data, made from a policy elsewhere.

use super::tag::TagName;

/// What is allowed at some state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// The allowed tags, each once, in the order in which they are shown.
    pub choices: Vec<Choice>,
    /// The states of the scope, for the tags that may name any of them.
    pub states: Vec<String>,
}

/// One allowed tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Which.
    pub tag: TagName,
    /// What it may name.
    pub routes: Routes,
}

/// What a tag may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Routes {
    /// Any state of the scope; for `result`, which names none, the only sensible value.
    Any,
    /// Only these.
    Only(Vec<Route>),
}

/// One way on; what is absent may be any state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Route {
    /// The state between the tags.
    pub target: Option<String>,
    /// `return` of call and function, `next` of fork; ignored elsewhere.
    pub then: Option<String>,
}

impl Allowance {
    /// Without a policy: the six tags, and every state.
    pub fn everything(states: Vec<String>) -> Self {
        let any = |tag| Choice { tag, routes: Routes::Any };
        Self { choices: TagName::ALL.map(any).to_vec(), states }
    }
}
