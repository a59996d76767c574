//! Warns of `--strict-budget` with clients that report no costs.
//!
//! A strict budget charges a turn's full budget share unless its client reported the cost. Raymond
//! estimates the costs of some clients from tokens, so with them every turn is charged in full. The
//! user should know that before anything is spent.

use raymond_backends::registry::{CLIENTS, ClientKind, CostOrigin};
use raymond_core::diagnostic::Diagnostic;
use raymond_core::run::Settings;
use raymond_core::workflow::{Reachability, State};

/// Returns warnings if a strict budget charges estimated turns in full, or has no effect.
pub(crate) fn warnings(settings: &Settings, reachable: &Reachability<'_>) -> Vec<Diagnostic> {
    if !settings.strict_budget {
        return Vec::new();
    }
    let has_share = |state: &&State| settings.budget.or(state.front.budget).is_some();
    let prompts = reachable.prompts().filter(|state| reachable.is_reached(&state.name));
    let (capped, uncapped): (Vec<&State>, Vec<&State>) = prompts.partition(has_share);
    if capped.is_empty() && !uncapped.is_empty() {
        let message = "--strict-budget has no effect without a budget";
        return vec![Diagnostic::warning("strict-without-budget", message)];
    }
    let estimated = CLIENTS.iter().filter(|kind| kind.costs == CostOrigin::Estimated);
    estimated.filter_map(|kind| charged_in_full(kind, settings, &capped)).collect()
}

/// Warns of states with a budget share whose client does not report costs.
fn charged_in_full(
    kind: &ClientKind,
    settings: &Settings,
    capped: &[&State],
) -> Option<Diagnostic> {
    let name = kind.name;
    let is_answered = |state: &&&State| settings.backend_of(&state.front).as_str() == name;
    let mut states = capped.iter().filter(is_answered);
    let (first, more) = (&states.next()?.name, states.count());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!(
        "a strict budget charges every turn of {name} its full budget share, because the costs of \
         {name} are estimates ({name} answers {first}{more})"
    );
    let hint = "remove `strict_budget`: Raymond then counts the tokens of each request and applies list prices";
    Some(Diagnostic::warning("strict-estimates", message).hint(hint))
}
