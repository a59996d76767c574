//! Permissions: the actions that a client may take without asking a user.
//!
//! The lists are passed to the client, which enforces them. Raymond only joins those of the run
//! with those of a state.

use serde::{Deserialize, Serialize};

use crate::workflow::Frontmatter;

/// The permissions of a client, as far as they are set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Permissions {
    /// The permission mode; `None` leaves it to the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Tools that the client may use, such as `Bash(cargo test:*)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Tools that the client must not use. They override `allow`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Whether permissions are checked at all.
    #[serde(default)]
    pub checks: Checks,
}

/// Whether a client checks permissions at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checks {
    #[default]
    Kept,
    /// `--dangerously-skip-permissions`
    Skipped,
}

impl Permissions {
    /// Returns the permissions of one state. Its mode replaces the mode of the run, and the lists
    /// add up.
    #[must_use]
    pub fn of_state(&self, front: &Frontmatter) -> Self {
        Self {
            mode: front.permission_mode.clone().or_else(|| self.mode.clone()),
            // A state can add to the denials of the run, but cannot take one away.
            allow: joined(&self.allow, &front.allow),
            // A state can add to the denials of the run, but cannot take one away.
            deny: joined(&self.deny, &front.deny),
            // Only a flag of the user skips the checks: no file of a project can
            // (docs/security.md).
            checks: self.checks,
        }
    }
}

/// Joins two lists without repeated entries.
pub fn joined(first: &[String], second: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for entry in first.iter().chain(second) {
        if !all.contains(entry) {
            all.push(entry.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_add_up_and_the_states_mode_wins() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let run = Permissions {
            mode: Some("plan".into()),
            allow: words(&["Read", "Bash(make:*)"]),
            deny: words(&["WebFetch"]),
            checks: Checks::Kept,
        };
        let front = Frontmatter {
            permission_mode: Some("acceptEdits".into()),
            allow: words(&["Bash(make:*)", "Edit"]),
            deny: words(&["Bash(rm:*)"]),
            ..Frontmatter::default()
        };
        let expected = Permissions {
            mode: Some("acceptEdits".into()),
            allow: words(&["Read", "Bash(make:*)", "Edit"]),
            deny: words(&["WebFetch", "Bash(rm:*)"]),
            checks: Checks::Kept,
        };
        assert_eq!(run.of_state(&front), expected);
        assert_eq!(run.of_state(&Frontmatter::default()), run);
    }
}
