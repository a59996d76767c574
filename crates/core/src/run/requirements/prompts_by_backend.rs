//! The prompts of a run, grouped by the backend that answers them.
//!
//! A finding about a whole run names the states of the backend that it concerns. It also names the
//! states of the other backends, because the user can write the setting into their frontmatter
//! instead.

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::ids::BackendName;
use crate::workflow::{Reachability, State};

/// States that a message lists by name; further states are only counted.
const LISTED: usize = 5;

/// The reachable prompts of a run, by the backend that answers them.
#[derive(Debug)]
pub struct PromptsByBackend<'a>(BTreeMap<&'a BackendName, Vec<&'a State>>);

impl<'a> PromptsByBackend<'a> {
    /// Groups the reachable prompts by `backend`.
    pub fn of(
        reachability: &Reachability<'a>,
        backend: impl Fn(&'a State) -> &'a BackendName,
    ) -> Self {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        // Requirements of the run as a whole concern only the states that it can use.
        for state in reachability.prompts().filter(|state| reachability.is_reached(&state.name)) {
            all.entry(backend(state)).or_default().push(state);
        }
        Self(all)
    }

    /// Iterates over the backends with their states.
    pub fn iter(&self) -> impl Iterator<Item = (&'a BackendName, &[&'a State])> {
        self.0.iter().map(|(backend, states)| (*backend, states.as_slice()))
    }

    /// Adds the states of `backend` to a finding. If other backends have states too, a hint says to
    /// write `key` into their frontmatter instead.
    #[must_use]
    pub fn with_states(
        &self,
        finding: Diagnostic,
        backend: &BackendName,
        key: Option<&str>,
    ) -> Diagnostic {
        let states = self.0.get(backend).map_or(&[] as &[_], Vec::as_slice);
        let message = format!("{} ({backend} answers {})", finding.message, listed(states));
        let others = self.iter().filter(|(other, _)| *other != backend);
        let others: Vec<&State> = others.flat_map(|(_, states)| states).copied().collect();
        let own = key.filter(|_| !others.is_empty()).map(|key| {
            let others = listed(&others);
            format!("write `{key}` into the frontmatter of {others} instead of asking it of all")
        });
        let hints: Vec<String> = finding.hint.into_iter().chain(own).collect();
        let hint = Some(hints.join("; or ")).filter(|hint| !hint.is_empty());
        Diagnostic { message, hint, ..finding }
    }
}

/// Lists the names of states; of many states only the first.
pub fn listed(states: &[&State]) -> String {
    let names: Vec<&str> = states.iter().take(LISTED).map(|state| state.name.as_str()).collect();
    match states.len().saturating_sub(LISTED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
