//! Policies: the transitions that a state may emit.
//!
//! A policy has three forms, and a transition must pass each of them. Names are kept as written and
//! compared with resolved states: by file name, or by stem if they have no extension. Whether such
//! a state exists is checked once, when the definition is parsed.

use std::collections::BTreeMap;

use crate::ids::StateName;
use crate::protocol::{Need, Route, Tag, TagName};

use super::name::means;

pub mod allowance;

/// The three forms of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// `allowed_tags`; `None` allows all.
    pub tags: Option<Vec<TagName>>,
    /// `allowed_targets`; a tag that is not in the map may target any state.
    pub targets: BTreeMap<TagName, Vec<Route>>,
    /// `allowed_transitions`; `None` allows all.
    pub transitions: Option<Vec<(TagName, Route)>>,
}

/// The part of a transition that a policy refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PolicyRefusal {
    /// The tag is not allowed here at all.
    #[error("this state may not emit the tag")]
    Tag,
    /// The tag is allowed, but not with this target.
    #[error("this state may not emit the tag with this target")]
    Target,
    /// The tag is allowed with this target, but not with this `return` or `next`.
    #[error("this state may not emit the tag with this `return` or `next`")]
    Follower,
}

impl Policy {
    /// Checks a transition against all forms. `then` is the resolved `return` or `next`, and
    /// `wait` the attribute of a `goto` beside forks.
    pub fn check(
        &self,
        tag: TagName,
        target: Option<&StateName>,
        then: Option<&StateName>,
        wait: Option<Need>,
    ) -> Result<(), PolicyRefusal> {
        if !self.allows(tag) {
            return Err(PolicyRefusal::Tag);
        }
        let fits = |route: &Route| {
            is(route.target.as_ref(), target) && (route.wait.is_none() || route.wait == wait)
        };
        if self.has_route(tag, |route| fits(route) && is(route.then.as_ref(), then)) {
            Ok(())
        } else if then.is_some() && self.has_route(tag, fits) {
            Err(PolicyRefusal::Follower)
        } else {
            Err(PolicyRefusal::Target)
        }
    }

    /// Returns whether `allowed_targets` and `allowed_transitions`, where they exist, have a route
    /// of the tag that passes.
    fn has_route(&self, tag: TagName, passes: impl Fn(&Route) -> bool) -> bool {
        let by_target = match self.targets.get(&tag) {
            Some(list) => list.iter().any(&passes),
            None => true,
        };
        by_target
            && match &self.transitions {
                Some(list) => list.iter().any(|(name, route)| *name == tag && passes(route)),
                None => true,
            }
    }

    /// Returns the tag that a message without any tag means: the only entry of
    /// `allowed_transitions`, if it names everything. A result needs a payload, so it is never
    /// implicit.
    pub fn implicit(&self) -> Option<Tag> {
        let [(tag, allowed)] = self.transitions.as_deref()? else {
            return None;
        };
        // Nothing could be waited for without forks.
        if allowed.wait.is_some() {
            return None;
        }
        // `allowed_tags` and `allowed_targets` are applied like for a written tag, when the tag is
        // taken.
        tag.implicit(allowed.target.clone()?, allowed.then.clone())
    }

    /// Returns every name in the policy, as written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let by_target = self.targets.values().flatten();
        let by_transition = self.transitions.iter().flatten().map(|(_, allowed)| allowed);
        by_target
            .chain(by_transition)
            .flat_map(|allowed| [&allowed.target, &allowed.then])
            .filter_map(Option::as_deref)
    }

    /// Returns whether the state may ask a person. A policy has to name `ask`.
    pub fn may_ask(&self) -> bool {
        let listed = self.tags.as_ref().is_some_and(|tags| tags.contains(&TagName::Ask));
        let mut entries = self.transitions.iter().flatten();
        listed
            || self.targets.contains_key(&TagName::Ask)
            || entries.any(|(tag, _)| *tag == TagName::Ask)
    }

    /// Returns whether `allowed_tags` and `allowed_transitions` contain the tag.
    fn allows(&self, tag: TagName) -> bool {
        let listed = self.tags.as_ref().is_none_or(|tags| tags.contains(&tag));
        let entered =
            self.transitions.as_ref().is_none_or(|list| list.iter().any(|(name, _)| *name == tag));
        listed && entered
    }
}

/// Returns whether a name in a route allows this state.
fn is(written: Option<&String>, state: Option<&StateName>) -> bool {
    match (written, state) {
        (None, _) => true,
        // The entry asks for a state where the tag names none.
        (Some(_), None) => false,
        (Some(written), Some(state)) => means(written, state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::few::Few;
    use crate::protocol::Stack;
    use crate::protocol::tags::Invoke;

    pub(super) fn entry(target: &str, then: &str) -> Route {
        let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        Route { target: name(target), then: name(then), wait: None }
    }

    fn check(policy: &Policy, emitted: (TagName, &str, &str), expected: Result<(), PolicyRefusal>) {
        let (tag, target, then) = emitted;
        let state = |name: &str| (!name.is_empty()).then(|| StateName::new(name));
        let (target, then) = (state(target), state(then));
        assert_eq!(
            policy.check(tag, target.as_ref(), then.as_ref(), None),
            expected,
            "{emitted:?}"
        );
    }

    #[test]
    fn no_policy_allows_everything() {
        let policy = Policy::default();
        check(&policy, (TagName::Goto, "A.md", ""), Ok(()));
        check(&policy, (TagName::Fork, "A.md", "B.md"), Ok(()));
        check(&policy, (TagName::Result, "", ""), Ok(()));
    }

    #[test]
    fn allowed_tags_refuse_the_tag() {
        let policy = Policy { tags: Some(vec![TagName::Goto]), ..Policy::default() };
        check(&policy, (TagName::Goto, "A.md", ""), Ok(()));
        check(&policy, (TagName::Result, "", ""), Err(PolicyRefusal::Tag));
    }

    #[test]
    fn allowed_targets_bind_the_tags_they_name() {
        let policy = Policy {
            targets: BTreeMap::from([
                (TagName::Goto, vec![entry("A", ""), entry("B.md", "")]),
                (TagName::Call, vec![entry("C", "R"), entry("D", ""), entry("", "S")]),
                (TagName::Reset, vec![]),
            ]),
            ..Policy::default()
        };
        check(&policy, (TagName::Goto, "A.md", ""), Ok(()));
        check(&policy, (TagName::Goto, "A.sh", ""), Ok(()));
        check(&policy, (TagName::Goto, "B.md", ""), Ok(()));
        check(&policy, (TagName::Goto, "B.sh", ""), Err(PolicyRefusal::Target));
        check(&policy, (TagName::Call, "C.md", "R.md"), Ok(()));
        check(&policy, (TagName::Call, "C.md", "X.md"), Err(PolicyRefusal::Follower));
        check(&policy, (TagName::Call, "D.md", "X.md"), Ok(()));
        check(&policy, (TagName::Call, "E.md", "S.md"), Ok(()));
        check(&policy, (TagName::Call, "C.md", ""), Err(PolicyRefusal::Target));
        check(&policy, (TagName::Reset, "A.md", ""), Err(PolicyRefusal::Target));
        check(&policy, (TagName::Function, "X.md", "Y.md"), Ok(()));
        check(&policy, (TagName::Result, "", ""), Ok(()));
    }

    #[test]
    fn allowed_transitions_are_the_whole_list() {
        let policy = Policy {
            transitions: Some(vec![
                (TagName::Goto, entry("A", "")),
                (TagName::Fork, entry("W", "N")),
                (TagName::Result, entry("", "")),
            ]),
            ..Policy::default()
        };
        check(&policy, (TagName::Goto, "A.md", ""), Ok(()));
        check(&policy, (TagName::Goto, "B.md", ""), Err(PolicyRefusal::Target));
        check(&policy, (TagName::Fork, "W.sh", "N.md"), Ok(()));
        check(&policy, (TagName::Fork, "W.sh", "A.md"), Err(PolicyRefusal::Follower));
        check(&policy, (TagName::Reset, "A.md", ""), Err(PolicyRefusal::Tag));
        check(&policy, (TagName::Result, "", ""), Ok(()));
    }

    #[test]
    fn a_transition_must_pass_all_forms() {
        let policy = Policy {
            tags: Some(vec![TagName::Goto, TagName::Result]),
            targets: BTreeMap::from([(TagName::Goto, vec![entry("A", ""), entry("B", "")])]),
            transitions: Some(vec![
                (TagName::Goto, entry("B", "")),
                (TagName::Goto, entry("C", "")),
                (TagName::Reset, entry("", "")),
            ]),
        };
        check(&policy, (TagName::Goto, "A.md", ""), Err(PolicyRefusal::Target));
        check(&policy, (TagName::Goto, "B.md", ""), Ok(()));
        check(&policy, (TagName::Goto, "C.md", ""), Err(PolicyRefusal::Target));
        check(&policy, (TagName::Reset, "A.md", ""), Err(PolicyRefusal::Tag));
        check(&policy, (TagName::Result, "", ""), Err(PolicyRefusal::Tag));
    }

    #[test]
    fn one_determined_entry_is_taken_implicitly() {
        let check = |list: &[(TagName, Route)], expected: Option<Tag>| {
            let policy = Policy { transitions: Some(list.to_vec()), ..Policy::default() };
            assert_eq!(policy.implicit(), expected, "{list:?}");
        };
        let invoke =
            || Invoke { target: "A".into(), return_to: "R".into(), input: None, model: None };
        let goto = |target: &str| Tag::Goto { target: target.into(), input: None };
        check(&[(TagName::Goto, entry("A", ""))], Some(goto("A")));
        check(
            &[(TagName::Reset, entry("A", ""))],
            Some(Tag::Reset { target: "A".into(), input: None, cd: None, stack: Stack::Keep }),
        );
        check(&[(TagName::Call, entry("A", "R"))], Some(Tag::Call(invoke())));
        check(&[(TagName::Function, entry("A", "R"))], Some(Tag::Function(invoke())));
        check(
            &[(TagName::Fork, entry("A", "N"))],
            Some(Tag::Fork {
                target: "A".into(),
                next: Some("N".into()),
                cd: None,
                input: None,
                attributes: Few::default(),
            }),
        );
        check(&[(TagName::Goto, entry("", ""))], None);
        check(&[(TagName::Call, entry("A", ""))], None);
        check(&[(TagName::Function, entry("", "R"))], None);
        check(&[(TagName::Fork, entry("A", ""))], None);
        check(&[(TagName::Result, entry("", ""))], None);
        check(&[(TagName::Goto, entry("A", "")), (TagName::Result, entry("", ""))], None);
        check(&[], None);
        assert_eq!(Policy::default().implicit(), None);
    }

    #[test]
    fn every_mentioned_name_is_listed() {
        let policy = Policy {
            tags: None,
            targets: BTreeMap::from([(TagName::Call, vec![entry("A", "B")])]),
            transitions: Some(vec![
                (TagName::Goto, entry("C", "")),
                (TagName::Fork, entry("", "D")),
            ]),
        };
        assert_eq!(policy.names().collect::<Vec<_>>(), ["A", "B", "C", "D"]);
    }
}
