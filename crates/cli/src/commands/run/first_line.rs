//! The first line of a run: its limits, backends and permissions.

use raymond_backends::{registry, scripted};
use raymond_core::ids::{BackendName, RunId};
use raymond_core::run::permissions::Checks;
use raymond_core::run::settings::Pinning;
use raymond_core::run::{Permissions, Program, Ralph, Settings};
use raymond_core::text::counted;
use raymond_core::workflow::{Definition, Reachability};
use raymond_engine::prepare::Prepared;

use crate::backends;
use crate::sanitize::sanitized;

/// Returns the first line, with the limits and permissions of the run.
pub(super) fn first_line(
    run: &RunId,
    program: &Program,
    settings: &Settings,
    prepared: &Prepared,
) -> String {
    let cap = settings.budget.map_or_else(|| "no cap".to_owned(), |cap| format!("cap {cap}"));
    let Prepared { definition, .. } = prepared;
    let clients = clients(settings, &asked_backends(settings, definition));
    if let Some(ralph) = program.ralph() {
        let parts = [vec![cap], clients, vec![loop_summary(ralph, settings, definition)]];
        return sanitized(&format!("{run}: {}", parts.concat().join(" · ")));
    }
    let mut parts = vec![cap, format!("{} at a time", settings.max_parallel)];
    let states = &definition.states;
    parts.extend(clients);
    if let Some(steps) = &definition.steps {
        let steps = counted(steps.document.steps().len() as u64, "step");
        parts.push(format!("{steps} pinned"));
        return format!("{run}: {}", parts.join(" · "));
    }
    let s = if states.len() == 1 { "state" } else { "states" };
    let pinned = match settings.definition {
        Pinning::Pinned => "pinned",
        Pinning::Unpinned => "read at every visit",
    };
    parts.push(format!("{} {s} {pinned}", states.len()));
    format!("{run}: {}", parts.join(" · "))
}

/// Formats `PROMPT.md up to 50 times, until `cargo test` passes`.
fn loop_summary(ralph: &Ralph, settings: &Settings, definition: &Definition) -> String {
    let pinned = match settings.definition {
        Pinning::Pinned => ", pinned",
        Pinning::Unpinned => "",
    };
    format!("{}{pinned}", ralph.describe(&definition.entry, settings.max_iterations))
}

/// Returns the names of the backends for the first line.
fn asked_backends<'a>(settings: &'a Settings, definition: &'a Definition) -> Vec<&'a str> {
    let asked = backends::reachable_backends(settings, &Reachability::of(definition));
    // The states may name real backends, but the replies answer for all of them.
    if backends::uses_only_replies(settings) && !asked.is_empty() {
        return vec![settings.backend.as_str()];
    }
    asked.into_keys().map(BackendName::as_str).collect()
}

/// Returns the backends, unless it is only the default one, and their permissions: `acceptEdits + 3
/// allowed`.
fn clients(settings: &Settings, backends: &[&str]) -> Vec<String> {
    let Permissions { mode, allow, deny, checks } = &settings.permissions;
    let counted = |count: usize, word: &str| match count {
        0 => String::new(),
        count => format!(" + {count} {word}"),
    };
    let mode = mode.as_deref().unwrap_or(registry::DEFAULT_PERMISSION_MODE);
    let may = match checks {
        Checks::Kept => {
            format!("{mode}{}{}", counted(allow.len(), "allowed"), counted(deny.len(), "denied"))
        }
        Checks::Skipped => "no permission checks".to_owned(),
    };
    match backends {
        [] => Vec::new(),
        [scripted::NAME] => vec![scripted::NAME.to_owned()],
        [registry::DEFAULT] => vec![may],
        several => vec![several.join(" + "), may],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_shows_permissions() {
        let check = |change: &dyn Fn(&mut Settings), expected: &[&str]| {
            let mut settings = Settings::default();
            change(&mut settings);
            assert_eq!(clients(&settings, &["claude"]), expected);
        };
        let tools = |count: usize| vec!["Edit".to_owned(); count];
        check(&|_| {}, &["acceptEdits"]);
        check(&|s| s.permissions.allow = tools(3), &["acceptEdits + 3 allowed"]);
        check(&|s| s.permissions.deny = tools(1), &["acceptEdits + 1 denied"]);
        check(&|s| s.permissions.mode = Some("plan".into()), &["plan"]);
        check(&|s| s.permissions.checks = Checks::Skipped, &["no permission checks"]);
    }

    #[test]
    fn first_line_names_backends_other_than_claude() {
        let check = |backends: &[&str], expected: &[&str]| {
            assert_eq!(clients(&Settings::default(), backends), expected);
        };
        check(&[], &[]);
        check(&["claude"], &["acceptEdits"]);
        check(&["scripted"], &["scripted"]);
        check(&["codex"], &["codex", "acceptEdits"]);
        check(&["claude", "codex"], &["claude + codex", "acceptEdits"]);
    }
}
