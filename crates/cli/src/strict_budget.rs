//! Warns of `--strict-budget` with clients that report no costs.
//!
//! A strict budget charges a turn's full budget share when its cost is unknown. Raymond estimates
//! the costs of Codex from tokens, so with Codex every turn is charged in full. The user should
//! know that before anything is spent.

use raymond_backends::codex;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::run::Settings;
use raymond_core::workflow::{Reachability, State};

/// Returns a warning if a strict budget charges estimated turns in full, or has no effect.
pub(crate) fn warning(settings: &Settings, reachable: &Reachability<'_>) -> Option<Diagnostic> {
    let has_share = |state: &&State| settings.budget.or(state.front.budget).is_some();
    let counts = |state: &&State| settings.backend_of(&state.front).as_str() == codex::NAME;
    let prompts = || reachable.prompts().filter(|state| reachable.is_reached(&state.name));
    if settings.strict_budget && prompts().next().is_some() && !prompts().any(|s| has_share(&s)) {
        let message = "--strict-budget has no effect without a budget";
        return Some(Diagnostic::warning("strict-without-budget", message));
    }
    let mut states = prompts().filter(has_share).filter(counts).filter(|_| settings.strict_budget);
    let (first, more) = (states.next()?, states.count());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!(
        "a strict budget charges every turn of {0} its full budget share, because the costs of {0} \
         are estimates ({0} answers {1}{more})",
        codex::NAME,
        first.name
    );
    let hint = "remove `strict_budget`: Raymond then counts the tokens of each request and applies list prices";
    Some(Diagnostic::warning("strict-estimates", message).hint(hint))
}
