//! Finds the states that a run can reach.
//!
//! A state without a policy, and every script, can lead to any state; a policy leads to the states
//! that it names. A result leads back to a state that a call named, which is counted at the call.

use std::collections::BTreeSet;

use crate::ids::StateName;
use crate::protocol::TagName;
use crate::protocol::tags::Body;

use super::{Definition, State};
use crate::protocol::{Route, Routes};

impl Definition {
    /// Returns the states that can be entered from these on, including these. A `broken` state
    /// could name any state once it is fixed, so it reaches all.
    pub(super) fn reach<'s>(
        &self,
        from: impl IntoIterator<Item = &'s StateName>,
        broken: &dyn Fn(&StateName) -> bool,
    ) -> BTreeSet<StateName> {
        let mut pending: Vec<StateName> = from.into_iter().cloned().collect();
        let mut reached: BTreeSet<StateName> = pending.iter().cloned().collect();
        while let Some(name) = pending.pop() {
            let Some(state) = self.states.get(&name) else {
                continue;
            };
            let Some(steps) = self.steps(state).filter(|_| !broken(&name)) else {
                return self.states.keys().cloned().collect();
            };
            for step in steps {
                if reached.insert(step.clone()) {
                    pending.push(step);
                }
            }
        }
        reached
    }

    /// Returns the states that a state can lead to; `None` means any state.
    fn steps(&self, state: &State) -> Option<Vec<StateName>> {
        // A transition to this state may enter its `then` instead.
        let mut names: Vec<String> = state.front.then.iter().cloned().collect();
        for (tag, choice) in state.front.policy.allowances() {
            match (tag.spec().body, choice) {
                (Body::Payload(_), _) => {}
                (Body::Target, Routes::Any) => return None,
                (Body::Target, Routes::Only(list)) => {
                    for allowed in list {
                        names.extend(named(tag, allowed)?);
                    }
                }
            }
        }
        // A name that does not resolve is reported when the definition is parsed, and leads
        // nowhere.
        let states = names.iter().filter_map(|name| self.resolve(name).ok());
        Some(states.map(|state| state.name.clone()).collect())
    }
}

/// Returns the names in one entry; `None` if the entry leaves a name open.
fn named(tag: TagName, allowed: Route) -> Option<Vec<String>> {
    let target = allowed.target?;
    match tag.spec().follower {
        None => Some(vec![target]),
        Some(_) => Some(vec![target, allowed.then?]),
    }
}
