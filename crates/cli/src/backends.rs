//! Who answers the prompts of a run.

mod misfits;
mod versions;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use raymond_backends::contract::Backend;
use raymond_backends::headless::Settings as Client;
use raymond_backends::scripted::{self, Replies, Scripted};
use raymond_backends::{claude, codex};
use raymond_core::capability::BackendCatalog;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::BackendName;
use raymond_core::prices::Price;
use raymond_core::run::Settings;
use raymond_core::run::settings::{ConfigHome, Pinning};
use raymond_core::workflow::{Definition, Kind, Reachability, State};
use raymond_engine::project::Project;
use raymond_engine::runner::Backends;

use crate::config::{self, Layer};
use crate::failure::{Failure, print_diagnostic};

pub(crate) use misfits::misfits;
pub(crate) use versions::replaced;

/// The backends that workflows and flags may name, and what each can do.
pub(crate) fn catalog() -> BackendCatalog {
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

/// The backend of states that name none, when nothing is played.
pub(crate) fn usual(config: &Layer) -> BackendName {
    let named = config.backend.as_ref().map(|backend| backend.value.as_str());
    BackendName::new(named.filter(|name| *name != scripted::NAME).unwrap_or(claude::NAME))
}

/// The backends that may know what became of a turn, whether they can be used or not.
pub(crate) fn known(project: &Project, settings: &Settings) -> Backends {
    let mut backends = Backends::default();
    let config = config::load(project).unwrap_or_default();
    let settings = &priced(settings.clone(), &config);
    backends.add(claude(&config, settings));
    backends.add(codex(&config, settings));
    if let Some(Ok(replies)) = settings.replies.as_ref().map(|file| Replies::load(file.as_ref())) {
        play(&mut backends, settings, replies);
    }
    backends
}

/// The backends that a run needs.
pub(crate) struct Usable {
    pub(crate) backends: Backends,
    /// The versions of their clients.
    pub(crate) clients: BTreeMap<BackendName, String>,
}

/// The backends that a run needs, which comes to what is reached. A prompt that none of them can answer
/// is refused here, before anything is spent.
pub(crate) fn usable(
    config: &Layer,
    settings: &Settings,
    survey: &Reachability<'_>,
) -> Result<Usable, Failure> {
    let (mut backends, mut clients) = (Backends::default(), BTreeMap::new());
    backends.check_with(misfits);
    if settings.definition == Pinning::Unpinned {
        // An edit may name them; whether they are there is seen when they are asked.
        backends.add(claude(config, settings));
        backends.add(codex(config, settings));
    }
    if let Some(file) = &settings.replies {
        let replies = Replies::load(file.as_ref())
            .map_err(|wrong| Failure::invalid("the file of replies", wrong))?;
        let Definition { states, asking, work, .. } = survey.definition;
        let noun = if work.is_some() { "agent step" } else { "state" };
        let names = states.keys().chain(asking.iter().map(|step| &step.name));
        for diagnostic in replies.check(names, noun) {
            print_diagnostic(&diagnostic);
        }
        play(&mut backends, settings, replies);
    }
    if is_played(settings) {
        return Ok(Usable { backends, clients });
    }
    check_replies(config, settings, survey)?;
    for state in survey.prompts() {
        add(&mut backends, (config, settings), settings.backend_of(&state.front));
    }
    for (name, state) in asked(settings, survey) {
        let version = match name.as_str() {
            claude::NAME => check_claude(config, settings, state)?,
            codex::NAME => check_codex(config, settings, state)?,
            _ => continue,
        };
        clients.insert(name.clone(), version);
    }
    Ok(Usable { backends, clients })
}

/// Adds a client. Whether it is there matters only where something leads to a state of it.
fn add(backends: &mut Backends, (config, settings): (&Layer, &Settings), name: &BackendName) {
    match name.as_str() {
        claude::NAME => backends.add(claude(config, settings)),
        codex::NAME => backends.add(codex(config, settings)),
        _ => {}
    }
}

/// The backends that a run may come to ask, each with a prompt that names it.
pub(crate) fn asked<'a>(
    settings: &'a Settings,
    survey: &Reachability<'a>,
) -> BTreeMap<&'a BackendName, &'a State> {
    let mut all = BTreeMap::new();
    for state in survey.prompts().filter(|state| survey.is_reached(&state.name)) {
        all.entry(settings.backend_of(&state.front)).or_insert(state);
    }
    all
}

/// Adds the backend that plays replies, for whoever it stands in for.
fn play(backends: &mut Backends, settings: &Settings, replies: Replies) {
    let scripted = Arc::new(Scripted::new(replies));
    if is_played(settings) {
        for name in catalog().names() {
            backends.answer_for(name.clone(), scripted.clone());
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
    let asked = definition.states.values().chain(&definition.asking);
    let prompts = asked.filter(is_answered).map(|state| &state.name);
    Replies::load(file.as_ref()).ok()?.unanswered(prompts)
}

/// Checks that Claude Code can be asked; returns its version.
fn check_claude(config: &Layer, settings: &Settings, state: &State) -> Result<String, Failure> {
    use claude::preflight::{Problem, check, check_version};
    let refused = |problem: Problem| refused((state, claude::NAME), &problem, problem.remedy());
    let (command, checks) = (claude_command(config), settings.permissions.checks);
    check(command.as_ref(), checks, settings.environment.as_deref()).map_err(refused)?;
    let version = versions::ask(claude::NAME, &command, state)?;
    check_version(command.as_ref(), &version).map_err(refused)?;
    Ok(version)
}

/// Checks that Codex can be asked; returns its version.
fn check_codex(config: &Layer, settings: &Settings, state: &State) -> Result<String, Failure> {
    use codex::preflight::{Problem, check, check_home, check_version};
    let refused = |problem: Problem| refused((state, codex::NAME), &problem, problem.remedy());
    let command = codex_command(config);
    check(command.as_ref()).map_err(refused)?;
    if settings.config_home == ConfigHome::Shared {
        check_home().map_err(refused)?;
    }
    let version = versions::ask(codex::NAME, &command, state)?;
    check_version(command.as_ref(), &version).map_err(refused)?;
    Ok(version)
}

/// A state that would be answered by a client that cannot be asked.
fn refused((state, name): (&State, &str), problem: &dyn Display, remedy: String) -> Failure {
    let message = format!("{} is answered by {name}: {problem}", state.name);
    Failure::environment(message).hint(remedy)
}

fn claude(config: &Layer, settings: &Settings) -> Arc<dyn Backend> {
    claude::client(Client { prices: settings.price_list(), ..Client::of(claude_command(config)) })
}

fn codex(config: &Layer, settings: &Settings) -> Arc<dyn Backend> {
    codex::client(Client { prices: settings.price_list(), ..Client::of(codex_command(config)) })
}

/// The user's own prices, as the configuration has them now.
pub(crate) fn own_prices(config: &Layer) -> BTreeMap<String, Price> {
    config.prices.iter().map(|(model, price)| (model.clone(), price.value)).collect()
}

/// Settings with prices: those of the configuration if the run recorded none.
pub(crate) fn priced(settings: Settings, config: &Layer) -> Settings {
    let prices = settings.prices.unwrap_or_else(|| own_prices(config));
    Settings { prices: Some(prices), ..settings }
}

/// The command of Claude Code.
pub(crate) fn claude_command(config: &Layer) -> String {
    config.claude.as_ref().map_or_else(|| claude::NAME.to_owned(), |command| command.value.clone())
}

/// The command of Codex.
pub(crate) fn codex_command(config: &Layer) -> String {
    config.codex.as_ref().map_or_else(|| codex::NAME.to_owned(), |command| command.value.clone())
}

/// Whether replies and another backend are asked for in one place: a flag may well undo what a file says.
fn is_said_together(config: &Layer) -> bool {
    let (Some(replies), Some(backend)) = (&config.replies, &config.backend) else { return false };
    replies.origin.is_beside(&backend.origin)
}

/// Who asks for replies must have them, and who has them must have something to play: otherwise clients
/// would be paid whom nobody meant.
fn check_replies(
    config: &Layer,
    settings: &Settings,
    survey: &Reachability<'_>,
) -> Result<(), Failure> {
    let asked = asked(settings, survey);
    let played = asked.get(&BackendName::new(scripted::NAME));
    // States that are read at every visit may become prompts.
    let may_ask = survey.prompts().next().is_some() || settings.definition == Pinning::Unpinned;
    match (&settings.replies, played) {
        (None, Some(state)) => {
            let what = if survey.definition.work.is_some() { "an agent step" } else { "a prompt" };
            let message =
                format!("{} is {what}, and the scripted backend has no replies", state.name);
            Err(Failure::environment(message).hint("name them with --replies FILE"))
        }
        (None, None) if may_ask && settings.backend.as_str() == scripted::NAME => {
            let message = "the scripted backend is asked for, and has no replies";
            Err(Failure::environment(message).hint("name them with --replies FILE"))
        }
        (Some(_), None) if !asked.is_empty() && is_said_together(config) => {
            let said = match survey.definition.work {
                Some(_) => String::new(),
                None => format!(", and no state says `backend: {}`", scripted::NAME),
            };
            let backend = &settings.backend;
            let message =
                format!("the replies would answer nothing: the backend is {backend}{said}");
            let hint = format!("leave out `backend` ({}) to play them all", settings.backend);
            Err(Failure::usage(message).hint(hint))
        }
        (Some(_) | None, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::capability::Capability;

    use super::*;

    /// The cells of a line of a table.
    fn cells(line: &str) -> Vec<&str> {
        line.trim_matches('|').split('|').map(str::trim).collect()
    }

    #[test]
    fn the_book_says_of_every_backend_what_it_declares() {
        let page = include_str!("../../../docs/backends.md");
        let mut lines = page.lines().skip_while(|line| !line.starts_with("| ability |"));
        let names: Vec<&str> = cells(lines.next().unwrap()).split_off(2);
        let rows: Vec<Vec<&str>> =
            lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect();

        let catalog = catalog();
        let declared: Vec<String> = catalog.names().map(|name| format!("`{name}`")).collect();
        assert_eq!(names, declared, "a column for each backend");
        let able = |capability: &Capability| -> Vec<bool> {
            catalog.names().map(|name| catalog.of(name).unwrap().contains(capability)).collect()
        };
        let declared: Vec<(String, Vec<bool>)> =
            Capability::ALL.iter().map(|each| (each.to_string(), able(each))).collect();
        let said = |row: &Vec<&str>| {
            let ability = row[0].split(':').next().unwrap().to_owned();
            (ability, row[2..].iter().map(|cell| !cell.starts_with("no")).collect())
        };
        assert_eq!(rows.iter().map(said).collect::<Vec<(String, Vec<bool>)>>(), declared);
    }
}
