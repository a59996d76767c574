//! Which states a run can come to.
//!
//! A state without a policy, and every script, can go anywhere; a policy leads where it says. A
//! result leads back to a state that some call named, which is counted where the call is allowed.

use std::collections::BTreeSet;

use crate::ids::StateName;
use crate::protocol::TagName;

use super::{Definition, State};
use crate::protocol::{Route, Routes};

impl Definition {
    /// The states that can be entered from these on, which are among them. A `broken` state may say anything once it is mended.
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

    /// Where a state leads; none means anywhere.
    fn steps(&self, state: &State) -> Option<Vec<StateName>> {
        let mut names: Vec<String> = state.front.then.iter().cloned().collect();
        for (tag, choice) in state.front.policy.allowances() {
            match (tag, choice) {
                (TagName::Result, _) => {}
                (_, Routes::Any) => return None,
                (tag, Routes::Only(list)) => {
                    for allowed in list {
                        names.extend(named(tag, allowed)?);
                    }
                }
            }
        }
        let states = names.iter().filter_map(|name| self.resolve(name).ok());
        Some(states.map(|state| state.name.clone()).collect())
    }
}

/// The names in one entry; none when it leaves open where it leads.
fn named(tag: TagName, allowed: Route) -> Option<Vec<String>> {
    let target = allowed.target?;
    match tag {
        TagName::Goto | TagName::Reset | TagName::Result => Some(vec![target]),
        TagName::Call | TagName::Function | TagName::Fork => Some(vec![target, allowed.then?]),
    }
}
