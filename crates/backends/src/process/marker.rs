//! The environment variable by which the processes of a turn are found again.

use std::ffi::OsString;
use std::fmt;

use raymond_core::ids::{Nonce, TurnId};

/// Names one attempt at one turn of one run: `<nonce>/<turn>.<attempt>`.
///
/// A run inside a script of another run has two of them, outermost first, so that both runs find
/// what it started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Marker(String);

const SEPARATOR: char = ':';

impl Marker {
    /// The environment variable that holds the list of markers.
    pub const VARIABLE: &str = "RAYMOND_TURN";

    /// The marker of this attempt.
    pub fn new(nonce: &Nonce, turn: &TurnId, attempt: u32) -> Self {
        Self(format!("{nonce}/{turn}.{attempt}"))
    }

    /// The nonce of the run.
    pub fn nonce(&self) -> &str {
        self.0.split_once('/').map_or("", |(nonce, _)| nonce)
    }

    /// The markers of a list, outermost first; what is not a marker is left out.
    pub(super) fn list(value: &str) -> impl Iterator<Item = Self> {
        let parts = value.split(SEPARATOR);
        parts.filter(|part| part.contains('/')).map(|part| Self(part.to_owned()))
    }

    /// The list with this marker as the innermost one.
    pub(super) fn within(&self, outer: Option<OsString>) -> OsString {
        match outer {
            Some(mut list) if !list.is_empty() => {
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
        let turn = TurnId::try_from("main_worker1.3.1".to_owned()).unwrap();
        let marker = Marker::new(&"c0ffee".into(), &turn, 2);
        let check = |outer: Option<&str>, expected: &str, markers: &[&str]| {
            let value = marker.within(outer.map(OsString::from));
            assert_eq!(value, expected);
            let list: Vec<_> = Marker::list(expected).map(|m| m.to_string()).collect();
            assert_eq!(list, markers);
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
        assert_eq!(marker.nonce(), "c0ffee");
    }
}
