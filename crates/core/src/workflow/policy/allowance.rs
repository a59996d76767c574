//! Combines the forms of a policy into one list of allowed transitions.
//!
//! Reminders list it, diagrams draw it, and reachability follows from it. A single transition is
//! checked by [`Policy::check`] instead.

use std::collections::BTreeSet;

use crate::protocol::{Allowance, Choice, Route, Routes, TagName};

use super::Policy;
use crate::extension::Extension;

impl Policy {
    /// Returns the allowance that a reminder lists, in a scope with these states.
    pub fn allowance(&self, states: Vec<String>) -> Allowance {
        let choice = |(tag, routes)| Choice { tag, routes };
        Allowance { choices: self.allowances().into_iter().map(choice).collect(), states }
    }

    /// Returns the allowed tags with their targets, in the order in which they are explained.
    pub fn allowances(&self) -> Vec<(TagName, Routes)> {
        TagName::ALL
            .into_iter()
            .filter(|tag| self.allows(*tag) && (*tag != TagName::Ask || self.may_ask()))
            .filter_map(|tag| Some((tag, self.choice(tag)?)))
            .collect()
    }

    fn choice(&self, tag: TagName) -> Option<Routes> {
        let by_target = self.targets.get(&tag).cloned();
        let by_transition = self.transitions.as_ref().map(|list| {
            let of_tag = list.iter().filter(|(name, _)| *name == tag);
            of_tag.map(|(_, allowed)| allowed.clone()).collect()
        });
        let list = match (by_target, by_transition) {
            (None, None) => return Some(Routes::Any),
            (Some(list), None) | (None, Some(list)) => list,
            (Some(left), Some(right)) => both(&left, &right),
        };
        // An entry without names allows everything, so the other entries add nothing.
        if list.contains(&Route::default()) {
            Some(Routes::Any)
        } else if list.is_empty() {
            None
        } else {
            Some(Routes::Only(list))
        }
    }
}

/// Returns the routes that pass both lists, in the order of the first.
fn both(left: &[Route], right: &[Route]) -> Vec<Route> {
    let mut list = Vec::new();
    let mut seen = BTreeSet::new();
    // Quadratic, but each list has at most 1,000 entries.
    for one in left {
        for other in right {
            let target = narrower(one.target.as_deref(), other.target.as_deref());
            let then = narrower(one.then.as_deref(), other.then.as_deref());
            let wait = match (one.wait, other.wait) {
                (Some(one), Some(other)) if one != other => Err(Disjoint),
                (one, other) => Ok(one.or(other)),
            };
            if let (Ok(target), Ok(then), Ok(wait)) = (target, then, wait) {
                let name = |name: Option<&str>| name.map(str::to_owned);
                let allowed = Route { target: name(target), then: name(then), wait };
                // Different pairs may narrow to the same route, which a reminder should list once.
                if seen.insert(allowed.clone()) {
                    list.push(allowed);
                }
            }
        }
    }
    list
}

/// The error that two names exclude each other.
struct Disjoint;

/// Returns the narrower of two names; `None` means any name.
fn narrower<'a>(one: Option<&'a str>, other: Option<&'a str>) -> Result<Option<&'a str>, Disjoint> {
    match (one, other) {
        (None, name) | (name, None) => Ok(name),
        (Some(one), Some(other)) if one == other || widens(other, one) => Ok(Some(one)),
        (Some(one), Some(other)) if widens(one, other) => Ok(Some(other)),
        (Some(_), Some(_)) => Err(Disjoint),
    }
}

/// Returns whether `stem` is the other name without its extension.
fn widens(stem: &str, name: &str) -> bool {
    Extension::of(stem).is_none()
        && Extension::of(name).is_some_and(|known| {
            let rest = name.strip_suffix(known.as_str());
            rest.and_then(|rest| rest.strip_suffix('.')) == Some(stem)
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::entry;
    use super::*;

    #[test]
    fn no_policy_allows_any_target() {
        let expected = TagName::WITHOUT_POLICY.map(|tag| (tag, Routes::Any));
        assert_eq!(Policy::default().allowances(), expected);
    }

    #[test]
    fn forms_are_put_together_as_they_are_checked() {
        let policy = Policy {
            tags: Some(vec![TagName::Result, TagName::Call, TagName::Goto, TagName::Reset]),
            targets: BTreeMap::from([
                (TagName::Goto, vec![entry("A", ""), entry("B.md", ""), entry("C.md", "")]),
                (TagName::Call, vec![entry("A", ""), entry("", "R.md")]),
                (TagName::Reset, vec![entry("A", "")]),
            ]),
            transitions: Some(vec![
                (TagName::Goto, entry("A.sh", "")),
                (TagName::Goto, entry("B", "")),
                (TagName::Goto, entry("C.sh", "")),
                (TagName::Call, entry("A", "R")),
                (TagName::Reset, entry("B", "")),
                (TagName::Fork, entry("A", "B")),
                (TagName::Result, entry("", "")),
            ]),
        };
        assert_eq!(
            policy.allowances(),
            [
                (TagName::Goto, Routes::Only(vec![entry("A.sh", ""), entry("B.md", "")])),
                (TagName::Call, Routes::Only(vec![entry("A", "R"), entry("A", "R.md")])),
                (TagName::Result, Routes::Any),
            ]
        );
    }

    #[test]
    fn empty_entry_allows_any_target() {
        let policy = Policy {
            transitions: Some(vec![
                (TagName::Goto, entry("A", "")),
                (TagName::Goto, entry("", "")),
            ]),
            ..Policy::default()
        };
        assert_eq!(policy.allowances(), [(TagName::Goto, Routes::Any)]);
    }
}
