//! What clients say of their versions.
//!
//! They are asked before a run starts or goes on. One that does not answer, or says no number, is taken
//! as it is: a wrapper need not know.

use std::collections::BTreeMap;

use raymond_core::ids::BackendName;
use raymond_core::view::health::Program;

use crate::ask;
use crate::failure::Failure;

/// The version of a client; none when it says no number.
pub(super) fn ask(command: &str) -> Result<Option<String>, Failure> {
    let is_number = |version: &String| version.starts_with(|first: char| first.is_ascii_digit());
    Ok(match crate::runtime()?.block_on(ask::version(command)) {
        Program::Answers { version, .. } => Some(version).filter(is_number),
        Program::Silent { .. } | Program::Missing => None,
    })
}

/// A line for each client that is another one than before.
pub(crate) fn replaced(
    before: &BTreeMap<BackendName, String>,
    now: &BTreeMap<BackendName, String>,
) -> Vec<String> {
    let both = now.iter().filter_map(|(name, now)| Some((name, before.get(name)?, now)));
    let changed = both.filter(|(_, before, now)| before != now);
    changed.map(|(name, before, now)| format!("{name} was {before}, and is {now} now")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_another_version_is_told() {
        let of = |clients: &[(&str, &str)]| -> BTreeMap<BackendName, String> {
            clients.iter().map(|(name, version)| ((*name).into(), (*version).into())).collect()
        };
        let check = |before: &[(&str, &str)], now: &[(&str, &str)], expected: &[&str]| {
            assert_eq!(replaced(&of(before), &of(now)), expected);
        };
        check(&[("claude", "2.1.325")], &[("claude", "2.1.325")], &[]);
        check(&[("claude", "1")], &[("claude", "2")], &["claude was 1, and is 2 now"]);
        check(&[], &[("claude", "2")], &[]);
        check(&[("claude", "1")], &[("codex", "2")], &[]);
    }
}
