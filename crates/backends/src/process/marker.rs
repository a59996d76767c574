//! The environment variable by which the processes of a turn are found again.
//!
//! A marker survives `fork`, `exec` and `setsid`, so it also finds daemons. A process that clears
//! its environment is found by `orphans` instead.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;

use raymond_core::ids::{Nonce, TurnId};
use raymond_core::scheduler::Turn;

/// The name of one attempt at one turn of one run: `<nonce>/<turn>.<attempt>`.
///
/// A run inside a script of another run has two markers, outermost first, so that both runs find
/// its processes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Marker(String);

const SEPARATOR: char = ':';

/// The entry of a detached process in place of the outer markers. A detached process belongs to no
/// outer run, although it may be a descendant of one.
const DETACHED: &str = "detached";

/// The value of the marker variable of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct MarkerList(String);

impl MarkerList {
    pub(super) fn new(value: String) -> Self {
        Self(value)
    }

    /// Returns the value for a detached process.
    pub(super) fn detached() -> OsString {
        DETACHED.into()
    }

    /// Whether the process, or the process that started it, was detached from these runs. It is
    /// then their descendant only by accident.
    pub(super) fn are_detached_from(&self, runs: &BTreeSet<Nonce>) -> bool {
        let is_detached = self.0.split(SEPARATOR).next() == Some(DETACHED);
        // A detached run may itself be one of these runs.
        is_detached && !runs.iter().any(|nonce| self.innermost_of(nonce).is_some())
    }

    /// Returns the markers, outermost first, without parts that are not markers.
    pub(super) fn list(&self) -> impl DoubleEndedIterator<Item = Marker> {
        let parts = self.0.split(SEPARATOR);
        // Other programs may set the variable to anything.
        parts.filter(|part| part.contains('/')).map(|part| Marker(part.to_owned()))
    }

    /// Returns the marker of the turn that started the process.
    pub(super) fn innermost(&self) -> Option<Marker> {
        self.list().next_back()
    }

    /// Returns the innermost marker of this run.
    pub(super) fn innermost_of(&self, nonce: &Nonce) -> Option<Marker> {
        let run = nonce.first();
        self.list().rfind(|marker| marker.run() == run)
    }
}

impl Marker {
    /// The environment variable that contains the list of markers.
    pub const VARIABLE: &str = "RAYMOND_TURN";

    /// Returns the marker of this attempt.
    pub fn new(nonce: &Nonce, turn: &TurnId, attempt: u32) -> Self {
        Self(format!("{nonce}/{turn}.{attempt}"))
    }

    /// Returns the marker of the current attempt at a turn.
    pub fn of(nonce: &Nonce, turn: &Turn) -> Self {
        Self::new(nonce, &turn.id, turn.attempt)
    }

    /// Returns the first nonce of the run. A rewind changes the nonce but not the first one.
    pub fn run(&self) -> Nonce {
        Nonce::from(self.0.split_once('/').map_or("", |(nonce, _)| nonce)).first()
    }

    /// Returns the list with this marker as the innermost marker.
    pub(super) fn within(&self, outer: Option<OsString>) -> OsString {
        match outer {
            Some(mut list) if !list.is_empty() => {
                // Appended, not replaced: the outer run must find this process, too, when it ends
                // its own.
                list.push(SEPARATOR.to_string());
                list.push(&self.0);
                list
            }
            _ => OsString::from(&self.0),
        }
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_of_nested_runs_are_a_list() {
        let turn = "main_worker1.3.1".parse::<TurnId>().unwrap();
        let marker = Marker::new(&"c0ffee".into(), &turn, 2);
        let check = |outer: Option<&str>, expected: &str, markers: &[&str]| {
            let value = marker.within(outer.map(OsString::from));
            assert_eq!(value, expected);
            let marks = MarkerList::new(expected.to_owned());
            let list: Vec<_> = marks.list().map(|m| m.to_string()).collect();
            assert_eq!(list, markers);
            assert_eq!(marks.innermost().as_ref(), Some(&marker));
        };
        let own = "c0ffee/main_worker1.3.1.2";
        check(None, own, &[own]);
        check(Some(""), own, &[own]);
        check(
            Some("beef/main.1.1.1"),
            &format!("beef/main.1.1.1:{own}"),
            &["beef/main.1.1.1", own],
        );
        check(Some("junk"), &format!("junk:{own}"), &[own]);
        assert_eq!(marker.run(), "c0ffee".into());
        let marks = MarkerList::new("c0ffee~beef/main.1.1.1".to_owned());
        for nonce in ["c0ffee", "c0ffee~beef", "c0ffee~f00d"] {
            assert!(marks.innermost_of(&nonce.into()).is_some(), "the same run, cut back: {nonce}");
        }
        assert_eq!(marks.innermost_of(&"beef".into()), None);
    }

    #[test]
    fn detached_process_belongs_to_its_own_run() {
        let check = |value: &str, from: &str, expected: bool| {
            let marks = MarkerList::new(value.to_owned());
            let runs = BTreeSet::from([Nonce::from(from), Nonce::from("f00d")]);
            assert_eq!(marks.are_detached_from(&runs), expected, "{value} {from}");
        };
        let turn = "main.1.1".parse::<TurnId>().unwrap();
        let inside = Marker::new(&"c0ffee".into(), &turn, 1).within(Some(MarkerList::detached()));
        let inside = inside.to_str().unwrap();
        check("detached", "beef", true);
        check(inside, "beef", true);
        check(inside, "c0ffee", false);
        check("", "beef", false);
        check("c0ffee/main.1.1.1", "beef", false);
        check("c0ffee/main.1.1.1:detached", "beef", false);
    }
}
