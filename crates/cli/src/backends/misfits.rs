//! What prompts ask of clients that the clients would not understand.
//!
//! Which words a client knows is told by its backend. A word of a state is a mistake in its file; one
//! of flags or configuration is told once for each backend that it would be handed to. Replies answer in
//! place of a client, and understand anything: what is played is asked of the client that would answer.

use raymond_backends::{claude, codex};
use raymond_core::budget::Micros;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::BackendName;
use raymond_core::prices::Prices;
use raymond_core::run::effect::Extras;
use raymond_core::run::requirements::{PromptsByBackend, listed};
use raymond_core::run::{Permissions, Settings};
use raymond_core::workflow::{Frontmatter, Mark, Reachability, State};

/// Returns what a client would not understand. `Requirements` reports what a backend cannot do at all.
pub(crate) fn misfits(settings: &Settings, survey: &Reachability<'_>) -> Vec<Diagnostic> {
    let (prices, mut found) = (settings.price_list(), Vec::new());
    for state in survey.prompts() {
        let wish = Wish::of_state(settings, &state.front);
        for misfit in wish.misfits(settings.real_backend_of(&state.front), &prices) {
            found.push(survey.marked(misfit.diagnostic, state, Mark::Key(misfit.key)));
        }
    }
    let answered = PromptsByBackend::of(survey, |state| settings.real_backend_of(&state.front));
    let mut shared = shared_model(settings, &answered);
    for (backend, states) in answered.iter() {
        for misfit in Wish::of_run(settings, states).misfits(backend, &prices) {
            shared = shared.filter(|_| misfit.key != "model");
            found.push(answered.told(misfit.diagnostic, backend, Some(misfit.key)));
        }
    }
    found.extend(shared);
    found
}

/// A model for all states, where several clients would be asked for it: few know the same ones.
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
    let message = format!("the model {model:?} is asked of {} and {last}", others.join(", "));
    let hint = format!(
        "leave it out, and write `model` into the frontmatter of {}",
        states.join(", or into that of ")
    );
    Some(Diagnostic::warning("shared-model", message).hint(hint))
}

/// Something that a client would not understand, and the key that asks for it.
struct Misfit {
    key: &'static str,
    diagnostic: Diagnostic,
}

impl Misfit {
    fn new(key: Option<&'static str>, message: String, remedy: String) -> Option<Self> {
        let diagnostic = Diagnostic::error("backend-lacks", message).hint(remedy);
        Some(Self { key: key?, diagnostic })
    }
}

/// What is asked of a client.
struct Wish {
    permissions: Permissions,
    effort: Option<String>,
    extras: Extras,
    model: Option<String>,
    cap: Option<Micros>,
}

impl Wish {
    /// What a state itself says.
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

    /// What the run says, as far as not all of these states say otherwise.
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

    fn misfits(&self, backend: &BackendName, prices: &Prices) -> Vec<Misfit> {
        let Self { permissions, extras, .. } = self;
        let effort = self.effort.as_deref();
        match backend.as_str() {
            claude::NAME => {
                let problems =
                    claude::preflight::RequestedOptions { permissions, effort }.problems();
                let misfit = |problem: claude::preflight::PreflightProblem| {
                    Misfit::new(problem.key(), problem.to_string(), problem.remedy())
                };
                problems.into_iter().filter_map(misfit).collect()
            }
            codex::NAME => {
                use codex::preflight::PreflightProblem;
                let (model, cap) = (self.model.as_deref(), self.cap);
                let wish =
                    codex::preflight::RequestedOptions { permissions, effort, extras, model, cap };
                let problems = wish.problems(prices);
                // That it keeps no lists at all is among what it can do.
                let problems =
                    problems.into_iter().filter(|p| !matches!(p, PreflightProblem::Deny(_)));
                let misfit = |problem: PreflightProblem| {
                    Misfit::new(problem.key(), problem.to_string(), problem.remedy())
                };
                problems.filter_map(misfit).collect()
            }
            _ => Vec::new(),
        }
    }
}
