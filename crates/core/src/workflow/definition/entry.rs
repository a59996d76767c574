//! Finds the state where a run starts.
//!
//! A scope has exactly one entry that runs on this platform, or the user names a state. The other
//! states are not checked here: see [`super::reachability`].

use crate::diagnostic::Diagnostic;
use crate::ids::StateName;

use super::{Definition, EntryPoint, State};

/// Stems of entry states.
const ENTRIES: [&str; 2] = ["1_START", "START"];

/// States that a message lists by name; further states are only counted.
const LISTED: usize = 10;

impl Definition {
    pub(super) fn entry(&self, start: &EntryPoint) -> Result<StateName, Box<Diagnostic>> {
        match start {
            EntryPoint::State(name) | EntryPoint::Ralph(name) => self
                .resolve(name)
                .map(|state| state.name.clone())
                .map_err(|why| Diagnostic::error("no-entry", why.to_string()).into()),
            // Documents of steps do not get here: `parse_with` handles them before it looks for an
            // entry.
            EntryPoint::Entry | EntryPoint::Steps => self.only_entry(),
        }
    }

    fn only_entry(&self) -> Result<StateName, Box<Diagnostic>> {
        let named = |state: &&State| ENTRIES.contains(&state.name.stem());
        // A workflow for several platforms may have an entry script for each of them.
        let (runnable, foreign): (Vec<_>, Vec<_>) =
            self.states.values().filter(named).partition(|state| self.can_run(state));
        match runnable.as_slice() {
            [entry] => Ok(entry.name.clone()),
            [] => Err(self.no_entry(&foreign).into()),
            several => {
                let message = format!("there are several entry states: {}", list(several));
                let error = Diagnostic::error("several-entries", message);
                Err(error
                    .hint("keep one of them, or name the state to start with (not in an archive)")
                    .into())
            }
        }
    }

    fn no_entry(&self, foreign: &[&State]) -> Diagnostic {
        let all: Vec<_> = self.states.values().collect();
        let found = if !foreign.is_empty() {
            format!("{} cannot be run on this platform", list(foreign))
        } else if all.is_empty() {
            "there are no states at all".to_owned()
        } else {
            format!("found {}", list(&all))
        };
        let message = format!("there is no entry state 1_START or START: {found}");
        let error = Diagnostic::error("no-entry", message);
        let is_lower = |state: &&&State| {
            let stem = state.name.stem();
            !ENTRIES.contains(&stem) && ENTRIES.iter().any(|entry| entry.eq_ignore_ascii_case(stem))
        };
        match all.iter().find(is_lower) {
            Some(State { name, .. }) => {
                let entry = name.as_str().replace(name.stem(), &name.stem().to_uppercase());
                error.hint(format!("rename {name} to {entry}"))
            }
            None => error.hint("add START.md, or name the state to start with (not in an archive)"),
        }
    }
}

fn list(states: &[&State]) -> String {
    let names: Vec<_> = states.iter().take(LISTED).map(|state| state.name.as_str()).collect();
    match states.len().saturating_sub(LISTED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
