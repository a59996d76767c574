//! Who answers the prompts of a run.

mod versions;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use raymond_backends::claude::{self, Claude};
use raymond_backends::codex::{self, Codex};
use raymond_backends::scripted::{self, Replies, Scripted};
use raymond_core::budget::Micros;
use raymond_core::capability::Offers;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::BackendName;
use raymond_core::prices::Prices;
use raymond_core::run::effect::Extras;
use raymond_core::run::settings::{ConfigHome, Pinning};
use raymond_core::run::{Permissions, Settings};
use raymond_core::workflow::{Definition, Kind, State};
use raymond_engine::project::Project;
use raymond_engine::shell::Backends;

use crate::config::{self, Layer};
use crate::failure::{Failure, print_diagnostic};

pub(crate) use versions::replaced;

/// The backends that workflows and flags may name, and what each can do.
pub(crate) fn offers() -> Offers {
    let all = [
        (claude::NAME, claude::CAPABILITIES),
        (codex::NAME, codex::CAPABILITIES),
        (scripted::NAME, scripted::CAPABILITIES),
    ];
    all.into_iter().map(|(name, can)| (BackendName::new(name), can)).collect()
}

/// Whether replies answer every prompt, whatever backend it names. The rules between backends hold
/// all the same: what is played today is asked of them tomorrow.
pub(crate) fn is_played(settings: &Settings) -> bool {
    settings.replies.is_some() && settings.backend.as_str() == scripted::NAME
}

/// The backends that may know what became of a turn, whether they can be used or not.
pub(crate) fn known(project: &Project, settings: &Settings) -> Backends {
    let mut backends = Backends::default();
    let config = config::load(project).unwrap_or_default();
    backends.add(claude(&config));
    backends.add(codex(&config));
    if let Some(Ok(replies)) = settings.replies.as_ref().map(|file| Replies::load(file.as_ref())) {
        play(&mut backends, settings, replies);
    }
    backends
}

/// The backends that a run needs.
pub(crate) struct Usable {
    pub(crate) backends: Backends,
    /// The versions of their clients, where they say one.
    pub(crate) clients: BTreeMap<BackendName, String>,
}

/// The backends that a run needs. A prompt that none of them can answer is refused here, before
/// anything is spent.
pub(crate) fn usable(
    config: &Layer,
    settings: &Settings,
    definition: &Definition,
) -> Result<Usable, Failure> {
    let (mut backends, mut clients) = (Backends::default(), BTreeMap::new());
    if settings.definition == Pinning::Unpinned {
        // An edit may name them; whether they are there is seen when they are asked.
        backends.add(claude(config));
        backends.add(codex(config));
    }
    if let Some(file) = &settings.replies {
        let replies = Replies::load(file.as_ref())
            .map_err(|wrong| Failure::invalid("the file of replies", wrong))?;
        for diagnostic in replies.check(definition.states.keys()) {
            print_diagnostic(&diagnostic);
        }
        play(&mut backends, settings, replies);
    }
    for (name, wanted) in wanted(settings, definition).into_iter().filter(|_| !is_played(settings))
    {
        match name.as_str() {
            claude::NAME => {
                let version = check_claude(config, settings, &wanted)?;
                clients.extend(version.map(|version| (name, version)));
                backends.add(claude(config));
            }
            codex::NAME => {
                let version = check_codex(config, settings, &wanted)?;
                clients.extend(version.map(|version| (name, version)));
                backends.add(codex(config));
            }
            scripted::NAME if backends.get(&name).is_none() => {
                return Err(no_replies(&wanted.state));
            }
            // A name that nobody knows was told before, unless nothing leads to its state.
            _ => {}
        }
    }
    Ok(Usable { backends, clients })
}

/// Adds the backend that plays replies, for whoever it stands in for.
fn play(backends: &mut Backends, settings: &Settings, replies: Replies) {
    let scripted = Arc::new(Scripted::new(replies));
    if is_played(settings) {
        for name in offers().names() {
            backends.stand_in(name.clone(), scripted.clone());
        }
    }
    backends.add(scripted);
}

/// Warns of prompts that will find no reply. States that are read at every visit may still change.
pub(crate) fn unanswered(settings: &Settings, definition: &Definition) -> Option<Diagnostic> {
    let file = settings.replies.as_ref().filter(|_| settings.definition == Pinning::Pinned)?;
    let is_answered = |state: &&State| {
        let backend = settings.backend_of(&state.front);
        state.kind == Kind::Prompt && (is_played(settings) || backend.as_str() == scripted::NAME)
    };
    let prompts = definition.states.values().filter(is_answered).map(|state| &state.name);
    Replies::load(file.as_ref()).ok()?.unanswered(prompts)
}

/// What a run wants of a backend.
struct Wanted {
    /// A prompt that names it.
    state: String,
    wishes: Vec<Wish>,
}

/// What a state wants of a client.
struct Wish {
    state: String,
    permissions: Permissions,
    effort: Option<String>,
    extras: Extras,
    model: Option<String>,
    cap: Option<Micros>,
}

fn wanted(settings: &Settings, definition: &Definition) -> BTreeMap<BackendName, Wanted> {
    let mut all: BTreeMap<BackendName, Wanted> = BTreeMap::new();
    for state in definition.states.values().filter(|state| state.kind == Kind::Prompt) {
        let name = settings.backend_of(&state.front);
        let first = || Wanted { state: state.name.to_string(), wishes: Vec::new() };
        let wanted = all.entry(name.clone()).or_insert_with(first);
        let effort = state.front.effort.clone().or_else(|| settings.effort.clone());
        let permissions = settings.permissions.of_state(&state.front);
        wanted.wishes.push(Wish {
            state: state.name.to_string(),
            permissions,
            effort,
            extras: Extras::of(&state.front),
            model: state.front.model.clone().or_else(|| settings.model.clone()),
            cap: state.front.budget.or(settings.budget),
        });
    }
    all
}

/// Checks that Claude Code can be asked; returns its version.
fn check_claude(
    config: &Layer,
    settings: &Settings,
    wanted: &Wanted,
) -> Result<Option<String>, Failure> {
    use claude::preflight::{Problem, Wish, check, check_version};
    let refused =
        |problem: Problem| refused(wanted, (&problem, problem.is_usage()), problem.remedy());
    let command = claude_command(config);
    for wish in &wanted.wishes {
        let (effort, environment) = (wish.effort.as_deref(), settings.environment.as_deref());
        let asked = Wish { permissions: &wish.permissions, effort, environment };
        check(command.as_ref(), asked).map_err(refused)?;
    }
    let version = versions::ask(&command)?;
    version.as_deref().map_or(Ok(()), check_version).map_err(refused)?;
    Ok(version)
}

/// Checks that Codex can be asked; returns its version.
fn check_codex(
    config: &Layer,
    settings: &Settings,
    wanted: &Wanted,
) -> Result<Option<String>, Failure> {
    use codex::preflight::{Problem, Wish, check, check_home, check_version};
    let refused =
        |problem: Problem| refused(wanted, (&problem, problem.is_usage()), problem.remedy());
    let (command, prices) = (codex_command(config), prices(config));
    for wish in &wanted.wishes {
        let (effort, model) = (wish.effort.as_deref(), wish.model.as_deref());
        let (permissions, extras) = (&wish.permissions, &wish.extras);
        let asked = Wish { permissions, effort, extras, model, cap: wish.cap };
        check(command.as_ref(), asked, &prices).map_err(|problem| match problem {
            Problem::Unpriced(_) => {
                Failure::usage(format!("{}: {problem}", wish.state)).hint(problem.remedy())
            }
            problem => refused(problem),
        })?;
    }
    if settings.config_home == ConfigHome::Shared {
        check_home().map_err(refused)?;
    }
    let version = versions::ask(&command)?;
    version.as_deref().map_or(Ok(()), check_version).map_err(refused)?;
    Ok(version)
}

fn refused(wanted: &Wanted, (problem, is_usage): (&dyn Error, bool), remedy: String) -> Failure {
    let failure = if is_usage {
        Failure::usage(problem.to_string())
    } else {
        Failure::environment(format!("{} is a prompt: {problem}", wanted.state))
    };
    failure.hint(remedy)
}

fn claude(config: &Layer) -> Arc<Claude> {
    Arc::new(Claude::new(claude::Settings {
        command: claude_command(config).into(),
        prices: prices(config),
        ..claude::Settings::default()
    }))
}

fn codex(config: &Layer) -> Arc<Codex> {
    Arc::new(Codex::new(codex::Settings {
        command: codex_command(config).into(),
        prices: prices(config),
        ..codex::Settings::default()
    }))
}

fn prices(config: &Layer) -> Prices {
    let own = config.prices.iter().map(|(model, price)| (model.clone(), price.value));
    Prices::default().with(own)
}

/// The command of Claude Code.
pub(crate) fn claude_command(config: &Layer) -> String {
    config.claude.as_ref().map_or_else(|| claude::NAME.to_owned(), |command| command.value.clone())
}

/// The command of Codex.
pub(crate) fn codex_command(config: &Layer) -> String {
    config.codex.as_ref().map_or_else(|| codex::NAME.to_owned(), |command| command.value.clone())
}

fn no_replies(state: &str) -> Failure {
    let message = format!("{state} is a prompt, and the scripted backend has no replies");
    Failure::environment(message).hint("name them with --replies FILE")
}
