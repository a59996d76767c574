//! Recipes: each gives a feature, or an event, that no other golden journal has.

mod ends;
mod states;
mod steps;

use super::builder::JournalBuilder;

/// Builds the run to its end.
pub(super) type Recipe = fn() -> JournalBuilder;

/// All recipes by name.
pub(super) const RECIPES: &[(&str, Recipe)] = &[
    ("settings", states::settings),
    ("priced", states::priced),
    ("kept-transitions", states::kept_transitions),
    ("held-fork", states::held_fork),
    ("waits", states::waits),
    ("held-wait", states::held_wait),
    ("joins", states::joins),
    ("joins-cancelled", states::joins_cancelled),
    ("questions", states::questions),
    ("answers", states::answers),
    ("woken", states::woken),
    ("adopted", states::adopted),
    ("client-chosen-sessions", states::client_chosen_sessions),
    ("warnings", states::warnings),
    ("faults", states::faults),
    ("untagged", states::untagged),
    ("crossing-backends", states::crossing_backends),
    ("ralph-without-result", states::ralph_without_result),
    ("declared-failures", states::declared_failures),
    ("kept-failed-result", states::kept_failed_result),
    ("ralph-exhausted", states::ralph_exhausted),
    ("ralph-without-success", states::ralph_without_success),
    ("failures", ends::failures),
    ("crashes", ends::crashes),
    ("interrupted-script", ends::interrupted_script),
    ("unpriced", ends::unpriced),
    ("lower-cap", ends::lower_cap),
    ("capped-answer", ends::capped_answer),
    ("full-disk", ends::full_disk),
    ("drained", ends::drained),
    ("stopped-by-its-process", ends::stopped_by_its_process),
    ("cancelled", ends::cancelled),
    ("rewound", ends::rewound),
    ("rewound-workers", ends::rewound_workers),
    ("rewound-and-governed", ends::governed),
    ("too-many-agents", ends::too_many_agents),
    ("too-deep", ends::too_deep),
    ("nothing-decides-yet", ends::unused_events),
    ("steps-brought", steps::brought),
    ("steps-invalid", steps::invalid),
    ("steps-failed", steps::failed),
    ("steps-contained", steps::contained),
    ("steps-answered", steps::answered),
    ("steps-missing-variable", steps::missing_variable),
    ("steps-not-a-list", steps::not_a_list),
    ("steps-too-many-items", steps::too_many_items),
    ("steps-not-converged", steps::not_converged),
    ("steps-agent-failed", steps::agent_failed),
    ("steps-edited", steps::edited),
];
