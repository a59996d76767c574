//! What `--strict-budget` means for clients that only count tokens.
//!
//! It charges the whole share of a turn that does not say what it cost. All that Codex costs is worked out
//! from its tokens, so that it never says so, and the whole share is charged each time: whoever asks for that
//! is told before anything is spent.

use raymond_backends::codex;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::run::Settings;
use raymond_core::workflow::{Reachability, State};

/// A warning, where a share of such a client would be charged, or no turn has a share.
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
