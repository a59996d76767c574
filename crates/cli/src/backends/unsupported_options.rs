//! Finds options that a client does not support, such as an unknown effort or a model without a
//! price.
//!
//! The backend knows its options. An option of a state is reported in its file; an option of flags
//! or configuration is reported once for each backend. With replies, the real backend is checked,
//! because the workflow will run with it later.

use raymond_backends::registry::{self, ClientProblem, RequestedOptions};
use raymond_core::budget::Micros;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::BackendName;
use raymond_core::prices::Prices;
use raymond_core::run::requirements::{PromptsByBackend, listed};
use raymond_core::run::turn_spec::Extras;
use raymond_core::run::{Permissions, Settings};
use raymond_core::workflow::{Frontmatter, FrontmatterPart, Reachability, State};

/// Returns the unsupported options. Missing capabilities are reported by `Requirements` instead.
pub(crate) fn unsupported_options(
    settings: &Settings,
    reachable: &Reachability<'_>,
) -> Vec<Diagnostic> {
    let (prices, mut found) = (settings.price_list(), Vec::new());
    for state in reachable.prompts() {
        let options = Options::of_state(settings, &state.front);
        for (key, problem) in options.unsupported(settings.real_backend_of(&state.front), &prices) {
            found.push(reachable.marked(problem, state, FrontmatterPart::Key(key)));
        }
    }
    let answered = PromptsByBackend::of(reachable, |state| settings.real_backend_of(&state.front));
    let mut shared = shared_model(settings, &answered);
    for (backend, states) in answered.iter() {
        for (key, problem) in Options::of_run(settings, states).unsupported(backend, &prices) {
            // The error about the model already explains the problem that the warning describes.
            shared = shared.filter(|_| key != "model");
            found.push(answered.with_states(problem, backend, Some(key)));
        }
    }
    found.extend(shared);
    found
}

/// Warns of one model for several clients, which rarely know the same models.
fn shared_model(settings: &Settings, answered: &PromptsByBackend<'_>) -> Option<Diagnostic> {
    let model = settings.model.as_ref()?;
    let hears = |state: &&State| state.front.model.is_none();
    let asked = answered.iter().filter(|(backend, _)| registry::client(backend).is_some());
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

/// The options that a client would get.
struct Options {
    permissions: Permissions,
    effort: Option<String>,
    extras: Extras,
    model: Option<String>,
    cap: Option<Micros>,
}

impl Options {
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
        // A model without a price is a problem if at least one state has a cap.
        let cap = states.iter().find_map(|s| s.front.budget).or(settings.budget);
        Self { permissions, effort, extras: Extras::default(), model, cap }
    }

    /// Returns the keys of the options that a backend does not support, with the problems.
    fn unsupported(
        &self,
        backend: &BackendName,
        prices: &Prices,
    ) -> Vec<(&'static str, Diagnostic)> {
        let Self { permissions, effort, extras, model, cap } = self;
        let (effort, model) = (effort.as_deref(), model.as_deref());
        let requested = RequestedOptions { permissions, effort, extras, model, cap: *cap };
        let Some(kind) = registry::client(backend) else { return Vec::new() };
        let problems = (kind.unsupported_options)(requested, prices);
        let diagnostic = |ClientProblem { key, message, remedy }| {
            Some((key?, Diagnostic::error("backend-lacks", message).hint(remedy)))
        };
        problems.into_iter().filter_map(diagnostic).collect()
    }
}
