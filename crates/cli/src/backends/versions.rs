//! Asks clients for their versions before a run starts or resumes.
//!
//! A program that does not report a version is not the client, and a run must not pay other clients
//! before that is known.

use std::collections::BTreeMap;

use crate::health::ClientProbe;
use raymond_backends::registry::{ClientKind, ClientProblem};
use raymond_core::ids::BackendName;
use raymond_core::workflow::State;

use crate::failure::Failure;
use crate::probe;

/// Returns the version of the client that a state needs.
pub(super) fn check(kind: &ClientKind, command: &str, state: &State) -> Result<String, Failure> {
    let name = kind.name;
    let (path, why) = match crate::runtime::runtime()?.block_on(probe::client_version(
        name,
        command,
        probe::CLIENT_TIMEOUT,
    )) {
        ClientProbe::Answers { version, .. } => return Ok(version),
        ClientProbe::Silent { path, why } => (path, why),
        ClientProbe::Missing => {
            (command.to_owned(), "the program does not exist any more".to_owned())
        }
    };
    let message = format!("could not read the version of {name} ({path}): {why}");
    let remedy = format!(
        "try `{path} --version`, then set `{name}` in the configuration to the path of the client"
    );
    Err(super::unusable_client(kind, state, ClientProblem { key: None, message, remedy }))
}

/// Returns a line for each client whose version changed.
pub(crate) fn version_changes(
    before: &BTreeMap<BackendName, String>,
    now: &BTreeMap<BackendName, String>,
) -> Vec<String> {
    // A client that the run has not used before cannot have changed.
    let both = now.iter().filter_map(|(name, now)| Some((name, before.get(name)?, now)));
    let changed = both.filter(|(_, before, now)| before != now);
    changed
        .map(|(name, before, now)| format!("{name} changed from version {before} to {now}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_change_is_reported() {
        let of = |clients: &[(&str, &str)]| -> BTreeMap<BackendName, String> {
            clients.iter().map(|(name, version)| ((*name).into(), (*version).into())).collect()
        };
        let check = |before: &[(&str, &str)], now: &[(&str, &str)], expected: &[&str]| {
            assert_eq!(version_changes(&of(before), &of(now)), expected);
        };
        check(&[("claude", "2.1.325")], &[("claude", "2.1.325")], &[]);
        check(&[("claude", "1")], &[("claude", "2")], &["claude changed from version 1 to 2"]);
        check(&[], &[("claude", "2")], &[]);
        check(&[("claude", "1")], &[("codex", "2")], &[]);
    }
}
