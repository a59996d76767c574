//! Checks a tag against every form of its state's policy.

use raymond_core::ids::StateName;
use raymond_core::protocol::TagName;

use super::names::stem;
use super::workflow::{Allowed, Policy, State};

/// Returns whether every form of the state's policy allows the tag.
pub(super) fn is_allowed(
    state: &State,
    tag: TagName,
    target: Option<&StateName>,
    then: Option<&StateName>,
) -> bool {
    let State::Prompt(prompt) = state else {
        return true;
    };
    let Policy { tags, targets, transitions } = &prompt.policy;
    let by_tag = tags.as_ref().is_none_or(|tags| tags.contains(&tag));
    // Only a payload has no target, and a policy cannot restrict a payload. A question names its
    // state in an attribute.
    let by_target = (target.is_none() && then.is_none())
        || targets
            .get(&tag)
            .is_none_or(|list| list.iter().any(|allowed| matches(allowed, target, then)));
    let by_transition = transitions.as_ref().is_none_or(|list| {
        list.iter().any(|(name, allowed)| *name == tag && matches(allowed, target, then))
    });
    by_tag && by_target && by_transition
}

fn matches(allowed: &Allowed, target: Option<&StateName>, then: Option<&StateName>) -> bool {
    let fits = |wanted: &Option<String>, state: Option<&StateName>| match (wanted, state) {
        (None, _) => true,
        (Some(wanted), Some(state)) => wanted == state.as_str() || wanted == stem(state),
        (Some(_), None) => false,
    };
    fits(&allowed.target, target) && fits(&allowed.then, then)
}
