//! Which prompts of a run each backend answers, so that what is asked of a whole run is told with the
//! states that hear it, and with those that could be asked instead.

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::ids::BackendName;
use crate::workflow::{Reachability, State};

/// More states than this are counted, not listed.
const LISTED: usize = 5;

/// The prompts that a run may come to, by the backends that answer them.
#[derive(Debug)]
pub struct PromptsByBackend<'a>(BTreeMap<&'a BackendName, Vec<&'a State>>);

impl<'a> PromptsByBackend<'a> {
    /// Those that something leads to.
    pub fn of(
        reachability: &Reachability<'a>,
        backend: impl Fn(&'a State) -> &'a BackendName,
    ) -> Self {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for state in reachability.prompts().filter(|state| reachability.is_reached(&state.name)) {
            all.entry(backend(state)).or_default().push(state);
        }
        Self(all)
    }

    /// Each backend with its states.
    pub fn iter(&self) -> impl Iterator<Item = (&'a BackendName, &[&'a State])> {
        self.0.iter().map(|(backend, states)| (*backend, states.as_slice()))
    }

    /// The same, with the states that hear it; where others do not, their own `key` is the way out.
    #[must_use]
    pub fn told(&self, told: Diagnostic, backend: &BackendName, key: Option<&str>) -> Diagnostic {
        let states = self.0.get(backend).map_or(&[] as &[_], Vec::as_slice);
        let message = format!("{} ({backend} answers {})", told.message, listed(states));
        let others = self.iter().filter(|(other, _)| *other != backend);
        let others: Vec<&State> = others.flat_map(|(_, states)| states).copied().collect();
        let own = key.filter(|_| !others.is_empty()).map(|key| {
            let others = listed(&others);
            format!("write `{key}` into the frontmatter of {others} instead of asking it of all")
        });
        let hints: Vec<String> = told.hint.into_iter().chain(own).collect();
        let hint = Some(hints.join("; or ")).filter(|hint| !hint.is_empty());
        Diagnostic { message, hint, ..told }
    }
}

/// The names of states; of very many only the first.
pub fn listed(states: &[&State]) -> String {
    let names: Vec<&str> = states.iter().take(LISTED).map(|state| state.name.as_str()).collect();
    match states.len().saturating_sub(LISTED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
