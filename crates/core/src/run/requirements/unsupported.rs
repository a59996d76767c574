//! Finds requirements of a state or a run that its backend cannot meet.
//!
//! They are found before anything is spent, because a missing protection must not be dropped
//! silently. A requirement of a state is reported at the key that makes it. The capabilities
//! themselves are in [`crate::capability`].

use crate::capability::Capability;
use crate::diagnostic::{Diagnostic, Remedy};
use crate::ids::BackendName;
use crate::protocol::TagName;
use crate::run::settings::Settings;
use crate::workflow::{Frontmatter, FrontmatterPart, Policy, Reachability, State};

use super::PromptsByBackend;

/// Reports the requirements of a state that its backend cannot meet.
pub(super) fn check_state(
    reachability: &Reachability<'_>,
    state: &State,
    backend: &BackendName,
    can: &[Capability],
) -> Vec<Diagnostic> {
    let needs = needs(&state.front).into_iter().filter(|(_, what)| !can.contains(what));
    let mistake = |(key, what)| {
        let mistake = lack(format!("{backend} {}: `{key}` asks for it", cannot(what)));
        let mistake =
            mistake.hint(format!("{}, or let another backend answer this state", instead(key)));
        reachability.marked(mistake, state, FrontmatterPart::Key(key))
    };
    needs.map(mistake).collect()
}

/// Returns the capabilities that a frontmatter requires, with the keys that require them.
fn needs(front: &Frontmatter) -> Vec<(&'static str, Capability)> {
    // A callee works in a branch, because it must not write into its caller's conversation.
    let calls = calls(&front.policy).map(|key| (key, Capability::Branch));
    let used_options = [
        (front.budget.is_some(), "budget", Capability::Cap),
        (front.effort.is_some(), "effort", Capability::Effort),
        (!front.allow.is_empty(), "allow", Capability::Permissions),
        (!front.deny.is_empty(), "deny", Capability::Permissions),
    ];
    let used_options =
        used_options.into_iter().filter_map(|(is_used, key, what)| is_used.then_some((key, what)));
    calls.into_iter().chain(used_options).collect()
}

/// Returns the key by which a policy names `call`. A policy that merely does not forbid `call` does
/// not require it.
fn calls(policy: &Policy) -> Option<&'static str> {
    let call = TagName::Call;
    let allowed = policy.allowances().iter().any(|(tag, _)| *tag == call);
    let is_entry = |(tag, _): &(TagName, _)| *tag == call;
    if !allowed {
        None
    } else if policy.transitions.iter().flatten().any(is_entry) {
        Some("allowed_transitions")
    } else if policy.targets.contains_key(&call) {
        Some("allowed_targets")
    } else if policy.tags.iter().flatten().any(|tag| *tag == call) {
        Some("allowed_tags")
    } else {
        None
    }
}

/// Reports the requirements of the whole run, once for each backend that cannot meet them.
pub(super) fn check_run(
    settings: &Settings,
    answered: &PromptsByBackend<'_>,
    backend: &BackendName,
    can: &[Capability],
) -> Vec<Diagnostic> {
    let lacks = |what| !can.contains(&what);
    let mut found = Vec::new();
    // Reminders and interrupted turns continue a conversation, so no prompt can do without it.
    for what in [Capability::Fresh, Capability::Resume] {
        if lacks(what) {
            let message = format!("{backend} {}, which every prompt needs", cannot(what));
            found.push((None, lack(message).hint("let another backend answer")));
        }
    }
    if let Some(cap) = settings.budget.filter(|_| lacks(Capability::Cap)) {
        let cannot = cannot(Capability::Cap);
        let message = format!("{backend} {cannot}, but the run has one of {cap}");
        found.push((Some("budget"), lack(message).remedy(Remedy::RunWithoutCap)));
    }
    let mut states = answered.iter().filter(|(name, _)| *name == backend);
    // If every state of the backend sets its own effort, each was reported already.
    let unsaid = states.any(|(_, states)| states.iter().any(|s| s.front.effort.is_none()));
    if let Some(effort) = settings.effort.as_ref().filter(|_| unsaid && lacks(Capability::Effort)) {
        let cannot = cannot(Capability::Effort);
        let message = format!("{backend} {cannot}, but the run asks for {effort:?}");
        let hint = "leave out `effort`, or let another backend answer";
        found.push((Some("effort"), lack(message).hint(hint)));
    }
    if lacks(Capability::Permissions) {
        found.extend(permissions(settings, backend));
    }
    found.into_iter().map(|(key, each)| answered.with_states(each, backend, key)).collect()
}

/// Reports permission lists that the backend ignores: denying is an error, because it protects;
/// allowing is a warning, because the client only asks more often.
fn permissions(
    settings: &Settings,
    backend: &BackendName,
) -> Vec<(Option<&'static str>, Diagnostic)> {
    let lists = &settings.permissions;
    let cannot = cannot(Capability::Permissions);
    let mut found = Vec::new();
    if let [first, ..] = lists.deny.as_slice() {
        let message = format!("{backend} {cannot}, but the run denies {first}");
        let hint = "leave out `deny` and set `permission_mode`, or let another backend answer";
        found.push((Some("deny"), lack(message).hint(hint)));
    }
    if let [first, ..] = lists.allow.as_slice() {
        let message = format!("{backend} {cannot}: it ignores that the run allows {first}");
        found.push((Some("allow"), Diagnostic::warning("backend-lacks", message)));
    }
    found
}

fn lack(message: String) -> Diagnostic {
    Diagnostic::error("backend-lacks", message)
}

const fn cannot(what: Capability) -> &'static str {
    match what {
        Capability::Fresh => "cannot open a conversation",
        Capability::Resume => "cannot continue a conversation",
        Capability::Branch => "cannot branch a conversation",
        Capability::ChosenIds => "cannot take an id that was chosen in advance",
        Capability::Schema => "cannot answer by a schema",
        Capability::Cost => "does not report the cost of a turn",
        Capability::Cap => "cannot stop at a cap",
        Capability::Effort => "has no effort setting",
        Capability::Permissions => "has no lists of allowed and denied tools",
    }
}

/// Returns what to write instead of a key.
fn instead(key: &str) -> &'static str {
    match key {
        "budget" => "leave it out and bound the visits with `max_visits`",
        "effort" => "leave it out",
        "allow" | "deny" => "leave it out and set `permission_mode`",
        _ => "use `function` for `call`",
    }
}
