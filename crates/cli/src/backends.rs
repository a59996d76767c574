//! Chooses and checks the backends of a run.
//!
//! A run needs the backends of all prompts that it can reach. Each client is checked before the run
//! starts or resumes, because a missing client found later would waste the cost of earlier turns.
//! Options that a client does not support are in `unsupported_options`, versions in `versions`.

mod unsupported_options;
mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_backends::contract::Backend;
use raymond_backends::headless::ClientSettings;
use raymond_backends::registry::{self, CLIENTS, ClientKind, ClientProblem};
use raymond_backends::scripted::{self, Replies, Scripted};
use raymond_core::diagnostic::{Diagnostic, Severity};
use raymond_core::extension::StateKind;
use raymond_core::ids::BackendName;
use raymond_core::prices::Price;
use raymond_core::run::Settings;
use raymond_core::run::prepared_answers::PreparedAnswers;
use raymond_core::run::settings::Pinning;
use raymond_core::workflow::{Definition, Reachability, State};
use raymond_engine::backends::Backends;
use raymond_engine::project::Project;

use crate::config::{self, Layer};
use crate::failure::{Failure, print_diagnostic};

pub(crate) use raymond_backends::registry::catalog;
pub(crate) use unsupported_options::unsupported_options;
pub(crate) use versions::version_changes;

/// Whether replies answer every prompt, even of states that name another backend. Rules between
/// backends still apply, because the same workflow runs with the real backends later.
pub(crate) fn uses_only_replies(settings: &Settings) -> bool {
    settings.replies.is_some() && settings.backend.as_str() == scripted::NAME
}

/// Returns the configured backend of states that name none, ignoring replies.
pub(crate) fn default_backend(config: &Layer) -> BackendName {
    let named = config.backend.as_ref().map(|backend| backend.value.as_str());
    // `scripted` in the configuration names no client that the replies could replace.
    BackendName::new(named.filter(|name| *name != scripted::NAME).unwrap_or(registry::DEFAULT))
}

/// Returns all backends that may have left a transcript, usable or not: a recovery reads them.
pub(crate) fn known(project: &Project, settings: &Settings) -> Backends {
    let mut backends = Backends::default();
    // A mistake in the configuration must not prevent reading what a paid turn left.
    let config = config::load(project).unwrap_or_default();
    let settings = &priced(settings.clone(), &config);
    for kind in CLIENTS {
        backends.add(client(kind, &config, settings));
    }
    // A missing or broken file of replies must not prevent the recovery of other backends.
    if let Some(Ok(replies)) = settings.replies.as_ref().map(|file| Replies::load(file.as_ref())) {
        add_scripted(&mut backends, settings, replies);
    }
    backends
}

/// The backends of a run.
pub(crate) struct UsableBackends {
    pub(crate) backends: Backends,
    /// The versions of the clients.
    pub(crate) clients: BTreeMap<BackendName, String>,
    /// The answers that the replies give instead of a person.
    pub(crate) answers: PreparedAnswers,
}

/// Returns the backends of all reachable prompts. Fails if one of them cannot be used, before
/// anything is spent.
///
/// `piped` are replies that came from a pipe, so that their file does not exist yet.
pub(crate) fn usable(
    config: &Layer,
    settings: &Settings,
    piped: Option<&str>,
    reachable: &Reachability<'_>,
) -> Result<UsableBackends, Failure> {
    let (mut backends, mut clients) = (Backends::default(), BTreeMap::new());
    let mut answers = PreparedAnswers::default();
    // Unpinned states are checked again at every visit, with the same function.
    backends.check_with(unsupported_options);
    if settings.definition == Pinning::Unpinned {
        // With unpinned states, an edit may name any client, so all are added unchecked.
        for kind in CLIENTS {
            backends.add(client(kind, config, settings));
        }
    }
    if let Some(file) = &settings.replies {
        let replies = load_replies(file, piped)
            .map_err(|wrong| Failure::invalid("the file of replies", wrong))?;
        for mistake in unknown_states(&replies, reachable.definition) {
            print_diagnostic(&Diagnostic { severity: Severity::Warning, ..mistake });
        }
        // A person answers a run that pays for some of its turns.
        if uses_only_replies(settings) {
            answers = replies.answers();
        }
        add_scripted(&mut backends, settings, replies);
    }
    // No client is started, so none has to be installed: this is how newcomers try a workflow.
    if uses_only_replies(settings) {
        return Ok(UsableBackends { backends, clients, answers });
    }
    // Before the clients are asked for their versions: with a mistake here a real client would be
    // paid.
    check_replies(config, settings, reachable)?;
    // All clients are added, but only clients of reachable states are checked.
    for state in reachable.prompts() {
        if let Some(kind) = registry::client(settings.backend_of(&state.front)) {
            backends.add(client(kind, config, settings));
        }
    }
    for (name, state) in reachable_backends(settings, reachable) {
        if let Some(kind) = registry::client(name) {
            clients.insert(name.clone(), check_client(kind, config, settings, state)?);
        }
    }
    Ok(UsableBackends { backends, clients, answers })
}

/// Refuses replies to mistyped states: a new run would miss them. Unpinned states may
/// still be added, and a resumed run may have lost some, so there they are only warnings.
pub(crate) fn check_reply_names(
    settings: &Settings,
    piped: Option<&str>,
    definition: &Definition,
) -> Result<(), Failure> {
    let Some(file) = settings.replies.as_ref().filter(|_| settings.definition == Pinning::Pinned)
    else {
        return Ok(());
    };
    let invalid = |wrong| Failure::invalid("the file of replies", wrong);
    let replies = load_replies(file, piped).map_err(invalid)?;
    let mut wrong = unknown_states(&replies, definition);
    wrong.retain(|found| found.severity == Severity::Error);
    if wrong.is_empty() { Ok(()) } else { Err(invalid(wrong)) }
}

fn unknown_states(replies: &Replies, definition: &Definition) -> Vec<Diagnostic> {
    let Definition { states, asking, steps, .. } = definition;
    let noun = if steps.is_some() { "agent step" } else { "state" };
    replies.check(states.keys().chain(asking.iter().map(|step| &step.name)), noun)
}

/// Returns the backends of reachable prompts, each with one state that uses it.
pub(crate) fn reachable_backends<'a>(
    settings: &'a Settings,
    reachable: &Reachability<'a>,
) -> BTreeMap<&'a BackendName, &'a State> {
    let mut all = BTreeMap::new();
    for state in reachable.prompts().filter(|state| reachable.is_reached(&state.name)) {
        all.entry(settings.backend_of(&state.front)).or_insert(state);
    }
    all
}

/// Adds the scripted backend, also in place of all others if it answers every prompt.
fn add_scripted(backends: &mut Backends, settings: &Settings, replies: Replies) {
    let scripted = Arc::new(Scripted::new(replies));
    if uses_only_replies(settings) {
        for name in catalog().names() {
            backends.answer_for(name.clone(), scripted.clone());
        }
    }
    backends.add(scripted);
}

/// Warns of prompts without a reply. Unpinned states may still change, so they are not checked.
pub(crate) fn unanswered(
    settings: &Settings,
    piped: Option<&str>,
    definition: &Definition,
) -> Option<Diagnostic> {
    let file = settings.replies.as_ref().filter(|_| settings.definition == Pinning::Pinned)?;
    let is_answered = |state: &&State| {
        let backend = settings.backend_of(&state.front);
        state.kind == StateKind::Prompt
            && (uses_only_replies(settings) || backend.as_str() == scripted::NAME)
    };
    let asked = definition.states.values().chain(&definition.asking);
    let prompts = asked.filter(is_answered).map(|state| &state.name);
    load_replies(file, piped).ok()?.unanswered(prompts)
}

fn load_replies(file: &str, piped: Option<&str>) -> Result<Replies, Vec<Diagnostic>> {
    match piped {
        Some(text) => Replies::parse("replies", text),
        None => Replies::load(file.as_ref()),
    }
}

/// Checks that the client of a state can be used, and returns its version.
fn check_client(
    kind: &ClientKind,
    config: &Layer,
    settings: &Settings,
    state: &State,
) -> Result<String, Failure> {
    let unusable_client = |problem| unusable_client(kind, state, problem);
    let command = command(kind, config);
    kind.check(command.as_ref(), settings).map_err(unusable_client)?;
    let version = versions::check(kind, &command, state)?;
    kind.check_version(command.as_ref(), &version).map_err(unusable_client)?;
    Ok(version)
}

/// The failure for a state whose client cannot be used.
fn unusable_client(kind: &ClientKind, state: &State, problem: ClientProblem) -> Failure {
    let ClientProblem { message, remedy, .. } = problem;
    let message = format!("could not use {} for {}: {message}", kind.name, state.name);
    Failure::environment(message).hint(remedy)
}

fn client(kind: &ClientKind, config: &Layer, settings: &Settings) -> Arc<dyn Backend> {
    let prices = settings.price_list();
    (kind.build)(ClientSettings { prices, ..ClientSettings::of(command(kind, config)) })
}

/// Returns the user's prices in the current configuration.
pub(crate) fn own_prices(config: &Layer) -> BTreeMap<String, Price> {
    config.prices.iter().map(|(model, price)| (model.clone(), price.value)).collect()
}

/// Adds the prices of the configuration to settings that recorded none.
pub(crate) fn priced(settings: Settings, config: &Layer) -> Settings {
    let prices = settings.prices.unwrap_or_else(|| own_prices(config));
    Settings { prices: Some(prices), ..settings }
}

pub(crate) fn command(kind: &ClientKind, config: &Layer) -> String {
    let configured = config.clients.get(kind.name).map(|command| command.value.as_str());
    configured.unwrap_or(kind.name).to_owned()
}

/// Whether replies and another backend come from the same layer. A flag may override a file on
/// purpose.
fn has_same_origin(config: &Layer) -> bool {
    let (Some(replies), Some(backend)) = (&config.replies, &config.backend) else { return false };
    replies.origin.is_beside(&backend.origin)
}

/// Checks that the scripted backend has replies, and that replies are used. Otherwise a real client
/// would be paid by mistake.
fn check_replies(
    config: &Layer,
    settings: &Settings,
    reachable: &Reachability<'_>,
) -> Result<(), Failure> {
    let asked = reachable_backends(settings, reachable);
    let played = asked.get(&BackendName::new(scripted::NAME));
    // Unpinned states may become prompts.
    let may_ask = reachable.prompts().next().is_some() || settings.definition == Pinning::Unpinned;
    match (&settings.replies, played) {
        (None, Some(state)) => {
            let what =
                if reachable.definition.steps.is_some() { "an agent step" } else { "a prompt" };
            let message =
                format!("{} is {what} but the scripted backend has no replies", state.name);
            Err(Failure::usage(message).hint("pass them with --replies FILE"))
        }
        (None, None) if may_ask && settings.backend.as_str() == scripted::NAME => {
            let message = "the scripted backend has no replies";
            Err(Failure::usage(message).hint("pass them with --replies FILE"))
        }
        (Some(_), None) if !asked.is_empty() && has_same_origin(config) => {
            let said = match reachable.definition.steps {
                Some(_) => String::new(),
                None => format!(" and no state sets `backend: {}`", scripted::NAME),
            };
            let backend = &settings.backend;
            let message = format!("`--replies` would be unused: the backend is {backend}{said}");
            let hint =
                "leave out --backend, or `backend` in the configuration, to play the replies";
            Err(Failure::usage(message).hint(hint))
        }
        (Some(_) | None, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::capability::Capability;

    use super::*;

    /// Returns the cells of a table row.
    fn cells(line: &str) -> Vec<&str> {
        line.trim_matches('|').split('|').map(str::trim).collect()
    }

    #[test]
    fn book_lists_the_capabilities_of_every_backend() {
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
