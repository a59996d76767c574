//! Prepares a prompt for `ralph`, which has no transitions: removes the keys about transitions.

use crate::diagnostic::{Diagnostic, Remedy};

use super::super::frontmatter::{Frontmatter, FrontmatterKey, OnDenied};
use super::super::policy::Policy;

/// Removes the keys without effect, and returns a warning for each.
pub(super) fn repeat(
    front: &mut Frontmatter,
    keys: &[FrontmatterKey],
    text: &str,
) -> Vec<Diagnostic> {
    let reminds = front.on_denied == OnDenied::Remind;
    let without_effect = keys.iter().filter(|key| match key.name.as_str() {
        "allowed_tags" | "allowed_targets" | "allowed_transitions" | "max_visits" | "then" => true,
        "on_denied" => reminds,
        _ => false,
    });
    let warnings = without_effect.map(|key| warning(key).at(text, key.span.clone())).collect();
    // Removed and not only ignored, so that no later check applies a key that the loop does not
    // use.
    front.policy = Policy::default();
    front.max_visits = None;
    front.then = None;
    if reminds {
        front.on_denied = OnDenied::Warn;
    }
    warnings
}

fn warning(key: &FrontmatterKey) -> Diagnostic {
    let name = &key.name;
    let warning = |message: String| Diagnostic::warning("not-for-ralph", message);
    match name.as_str() {
        "max_visits" => {
            warning(format!("`{name}` has no effect in ralph")).remedy(Remedy::LimitIterations)
        }
        "on_denied" => {
            warning(format!("`{name}: remind` has no effect in ralph, which sends no reminders"))
                .hint("it is read as `warn`; `fail` ends the iteration")
        }
        _ => warning(format!("`{name}` has no effect in ralph: only <result> counts"))
            .remedy(Remedy::RunAsWorkflow),
    }
}
