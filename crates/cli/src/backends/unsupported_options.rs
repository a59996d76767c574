//! Finds options that a client does not support, such as an unknown effort or a model without a
//! price.
//!
//! The backend knows its options. An option of a state is reported in its file; an option of flags
//! or configuration is reported once for each backend. With replies, the real backend is checked,
//! because the workflow will run with it later.

use raymond_backends::{claude, codex};
use raymond_core::budget::Micros;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::BackendName;
use raymond_core::prices::Prices;
use raymond_core::run::effect::Extras;
use raymond_core::run::requirements::{PromptsByBackend, listed};
use raymond_core::run::{Permissions, Settings};
use raymond_core::workflow::{Frontmatter, Mark, Reachability, State};

/// Returns the unsupported options. Missing capabilities are reported by `Requirements` instead.
pub(crate) fn unsupported_options(
    settings: &Settings,
    reachable: &Reachability<'_>,
) -> Vec<Diagnostic> {
    let (prices, mut found) = (settings.price_list(), Vec::new());
    for state in reachable.prompts() {
        let requested = RequestedOptions::of_state(settings, &state.front);
        for option in requested.unsupported_options(settings.real_backend_of(&state.front), &prices)
        {
            found.push(reachable.marked(option.diagnostic, state, Mark::Key(option.key)));
        }
    }
    let answered = PromptsByBackend::of(reachable, |state| settings.real_backend_of(&state.front));
    let mut shared = shared_model(settings, &answered);
    for (backend, states) in answered.iter() {
        for option in
            RequestedOptions::of_run(settings, states).unsupported_options(backend, &prices)
        {
            shared = shared.filter(|_| option.key != "model");
            found.push(answered.with_states(option.diagnostic, backend, Some(option.key)));
        }
    }
    found.extend(shared);
    found
}

/// Warns of one model for several clients, which rarely know the same models.
fn shared_model(settings: &Settings, answered: &PromptsByBackend<'_>) -> Option<Diagnostic> {
    let model = settings.model.as_ref()?;
    let hears = |state: &&State| state.front.model.is_none();
    let is_client = |backend: &BackendName| matches!(backend.as_str(), claude::NAME | codex::NAME);
    let asked = answered.iter().filter(|(backend, _)| is_client(backend));
    let asked = asked.filter_map(|(backend, states)| {
        let states: Vec<&State> = states.iter().copied().filter(hears).collect();
        (!states.is_empty()).then(|| (backend.as_str(), listed(&states)))
    });
    let (names, states): (Vec<&str>, Vec<String>) = asked.unzip();
    let (last, others @ [_, ..]) = names.split_last()? else { return None };
    let message = format!(
        "the model {model:?} applies to several backends: {} and {last}",
        others.join(", ")
    );
    let hint =
        format!("remove it and set `model` in the frontmatter of {}", states.join(", or of "));
    Some(Diagnostic::warning("shared-model", message).hint(hint))
}

/// An option that a client does not support, and its key.
struct UnsupportedOption {
    key: &'static str,
    diagnostic: Diagnostic,
}

impl UnsupportedOption {
    fn new(key: Option<&'static str>, message: String, remedy: String) -> Option<Self> {
        let diagnostic = Diagnostic::error("backend-lacks", message).hint(remedy);
        Some(Self { key: key?, diagnostic })
    }
}

/// The options that a client would get.
struct RequestedOptions {
    permissions: Permissions,
    effort: Option<String>,
    extras: Extras,
    model: Option<String>,
    cap: Option<Micros>,
}

impl RequestedOptions {
    /// Returns the options that a state sets itself.
    fn of_state(settings: &Settings, front: &Frontmatter) -> Self {
        let own = Permissions { checks: settings.permissions.checks, ..Permissions::default() };
        Self {
            permissions: own.of_state(front),
            effort: front.effort.clone(),
            extras: Extras::of(front),
            model: front.model.clone(),
            cap: front.budget.or(settings.budget),
        }
    }

    /// Returns the options of the run that at least one of these states does not override.
    fn of_run(settings: &Settings, states: &[&State]) -> Self {
        let mut permissions = settings.permissions.clone();
        permissions.mode =
            permissions.mode.filter(|_| states.iter().any(|s| s.front.permission_mode.is_none()));
        let effort = settings.effort.clone();
        let effort = effort.filter(|_| states.iter().any(|s| s.front.effort.is_none()));
        let model = settings.model.clone();
        let model = model.filter(|_| states.iter().any(|s| s.front.model.is_none()));
        let cap = states.iter().find_map(|s| s.front.budget).or(settings.budget);
        Self { permissions, effort, extras: Extras::default(), model, cap }
    }

    fn unsupported_options(
        &self,
        backend: &BackendName,
        prices: &Prices,
    ) -> Vec<UnsupportedOption> {
        let Self { permissions, extras, .. } = self;
        let effort = self.effort.as_deref();
        match backend.as_str() {
            claude::NAME => {
                let problems =
                    claude::preflight::RequestedOptions { permissions, effort }.problems();
                let option = |problem: claude::preflight::PreflightProblem| {
                    UnsupportedOption::new(problem.key(), problem.to_string(), problem.remedy())
                };
                problems.into_iter().filter_map(option).collect()
            }
            codex::NAME => {
                use codex::preflight::PreflightProblem;
                let (model, cap) = (self.model.as_deref(), self.cap);
                let requested =
                    codex::preflight::RequestedOptions { permissions, effort, extras, model, cap };
                let problems = requested.problems(prices);
                // A missing tool list is a missing capability, which `Requirements` reports.
                let problems =
                    problems.into_iter().filter(|p| !matches!(p, PreflightProblem::Deny(_)));
                let option = |problem: PreflightProblem| {
                    UnsupportedOption::new(problem.key(), problem.to_string(), problem.remedy())
                };
                problems.filter_map(option).collect()
            }
            _ => Vec::new(),
        }
    }
}
