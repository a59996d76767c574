//! What a state may emit.

use std::collections::BTreeMap;

use crate::protocol::TagName;

/// The three forms, each of which a transition must pass. Names are as written: they match by file
/// name, or by stem when they have no extension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// `allowed_tags`; absent allows all.
    pub tags: Option<Vec<TagName>>,
    /// `allowed_targets`; a tag that is not in the map may target anything.
    pub targets: BTreeMap<TagName, Vec<Allowed>>,
    /// `allowed_transitions`; absent allows all.
    pub transitions: Option<Vec<(TagName, Allowed)>>,
}

/// One allowed target; what is absent may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowed {
    /// The state between the tags.
    pub target: Option<String>,
    /// `return` of call and function, `next` of fork.
    pub then: Option<String>,
}
