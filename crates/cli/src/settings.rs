//! Flags as settings of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_backends::scripted::{Replies, Scripted};
use raymond_core::ids::BackendName;
use raymond_core::run::Settings;
use raymond_core::run::settings::{InterruptedScripts, OnLostSession};
use raymond_core::workflow::{Definition, Kind, environment};
use raymond_engine::shell::Backends;

use crate::args::{self, Governing};
use crate::failure::{Failure, print_diagnostic};
use crate::paths::absolute;

/// The settings that flags ask for, over those that were.
pub(crate) fn govern(mut settings: Settings, flags: &Governing) -> Result<Settings, Failure> {
    if let Some(args::Budget(budget)) = flags.budget {
        settings.budget = budget;
    }
    settings.strict_budget |= flags.strict_budget;
    settings.no_wait = flags.no_wait;
    settings.model = flags.model.clone().or(settings.model);
    settings.effort = flags.effort.clone().or(settings.effort);
    settings.timeout = flags.timeout.or(settings.timeout);
    settings.idle_timeout = flags.idle_timeout.or(settings.idle_timeout);
    settings.max_parallel = flags.max_parallel.unwrap_or(settings.max_parallel);
    settings.max_agents = flags.max_agents.unwrap_or(settings.max_agents);
    settings.reminders = flags.reminders.unwrap_or(settings.reminders);
    settings.retries = flags.retries.unwrap_or(settings.retries);
    if let Some(file) = &flags.replies {
        settings.backend = BackendName::new("scripted");
        settings.replies = Some(absolute(file)?);
    }
    if let Some(backend) = &flags.backend {
        settings.backend = BackendName::new(backend.as_str());
    }
    match flags.on_lost_session {
        Some(args::LostSession::Fail) => settings.on_lost_session = OnLostSession::Fail,
        Some(args::LostSession::Fresh) => settings.on_lost_session = OnLostSession::Fresh,
        None => {}
    }
    match flags.interrupted_scripts {
        Some(args::InterruptedScripts::Rerun) => {
            settings.interrupted_scripts = InterruptedScripts::Rerun;
        }
        Some(args::InterruptedScripts::Fail) => {
            settings.interrupted_scripts = InterruptedScripts::Fail;
        }
        None => {}
    }
    Ok(settings)
}

/// Names that templates know already: a variable of that name would never be seen.
const BUILT_IN: [&str; 8] =
    ["run_id", "workflow_id", "agent_id", "state", "visit", "scope", "result", "input"];

/// `--var K=V`, each name once.
pub(crate) fn vars(pairs: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut vars = BTreeMap::new();
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failure::usage(format!("--var {pair:?} is not of the form K=V")));
        };
        if !raymond_core::workflow::template::is_name(name) {
            let message = format!("{name:?} is not the name of a variable");
            return Err(Failure::usage(message)
                .hint("names are letters, digits, `-` and `_`, and do not start with a digit"));
        }
        if BUILT_IN.contains(&name) {
            return Err(Failure::usage(format!("{{{{{name}}}}} has a meaning of its own"))
                .hint("choose another name for the variable"));
        }
        if vars.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::usage(format!("--var {name} is given twice")));
        }
    }
    environment::check_vars(&vars).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(vars)
}

/// The backends that may know what became of a turn, whether they can be used or not.
pub(crate) fn known(settings: &Settings) -> Backends {
    let mut backends = Backends::default();
    if let Some(Ok(replies)) = settings.replies.as_ref().map(|file| Replies::load(file.as_ref())) {
        backends.add(Arc::new(Scripted::new(replies)));
    }
    backends
}

/// The backends that a run needs. A prompt that none of them can answer is refused here, before
/// anything is spent.
pub(crate) fn backends(settings: &Settings, definition: &Definition) -> Result<Backends, Failure> {
    let mut backends = Backends::default();
    if let Some(file) = &settings.replies {
        let replies = Replies::load(file.as_ref())
            .map_err(|wrong| Failure::invalid("the file of replies", wrong))?;
        for diagnostic in replies.check(definition.states.keys()) {
            print_diagnostic(&diagnostic);
        }
        backends.add(Arc::new(Scripted::new(replies)));
    }
    for state in definition.states.values().filter(|state| state.kind == Kind::Prompt) {
        let name = state.front.backend.as_ref().unwrap_or(&settings.backend);
        if backends.get(name).is_none() {
            return Err(unusable(name, state.name.as_str()));
        }
    }
    Ok(backends)
}

fn unusable(name: &BackendName, state: &str) -> Failure {
    match name.as_str() {
        "scripted" => Failure::environment(format!(
            "{state} is a prompt, and the scripted backend has no replies"
        ))
        .hint("name them with --replies FILE"),
        _ => Failure::environment(format!(
            "{state} is a prompt, and the backend {name:?} is not part of this release"
        ))
        .hint("play replies from a file with --replies FILE"),
    }
}
