//! Configuration and flags as settings of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_backends::scripted::{Replies, Scripted};
use raymond_core::ids::BackendName;
use raymond_core::run::Settings;
use raymond_core::run::permissions::joined;
use raymond_core::workflow::{Definition, Kind, environment};
use raymond_engine::shell::Backends;

use crate::args::Governing;
use crate::config::{Layer, Sourced};
use crate::failure::{Failure, print_diagnostic};
use crate::paths::absolute;

/// The settings that a layer asks for, over those that were.
pub(crate) fn govern(mut settings: Settings, asked: &Layer) -> Result<Settings, Failure> {
    put(&mut settings.budget, asked.budget.as_ref());
    put(&mut settings.strict_budget, asked.strict_budget.as_ref());
    put(&mut settings.max_parallel, asked.max_parallel.as_ref());
    put(&mut settings.max_agents, asked.max_agents.as_ref());
    put(&mut settings.reminders, asked.reminders.as_ref());
    put(&mut settings.retries, asked.retries.as_ref());
    put(&mut settings.on_lost_session, asked.on_lost_session.as_ref());
    put(&mut settings.interrupted_scripts, asked.interrupted_scripts.as_ref());
    put(&mut settings.config_home, asked.config_home.as_ref());
    put(&mut settings.environment, asked.environment.as_ref());
    put(&mut settings.permissions.checks, asked.checks.as_ref());
    put_some(&mut settings.model, asked.model.as_ref());
    put_some(&mut settings.effort, asked.effort.as_ref());
    put_some(&mut settings.timeout, asked.timeout.as_ref());
    put_some(&mut settings.idle_timeout, asked.idle_timeout.as_ref());
    put_some(&mut settings.permissions.mode, asked.permission_mode.as_ref());
    // Whoever resumes decides anew whether to wait.
    settings.no_wait = asked.no_wait.as_ref().is_some_and(|no_wait| no_wait.value);
    if let Some(file) = &asked.replies {
        settings.replies = Some(absolute(&file.value)?);
    }
    if let Some(backend) = &asked.backend {
        settings.backend = BackendName::new(backend.value.as_str());
    }
    let tools = |list: &[Sourced<String>]| -> Vec<String> {
        list.iter().map(|tool| tool.value.clone()).collect()
    };
    let permissions = &mut settings.permissions;
    permissions.allow = joined(&permissions.allow, &tools(&asked.allow));
    permissions.deny = joined(&permissions.deny, &tools(&asked.deny));
    Ok(settings)
}

fn put<T: Clone>(setting: &mut T, asked: Option<&Sourced<T>>) {
    if let Some(asked) = asked {
        setting.clone_from(&asked.value);
    }
}

fn put_some<T: Clone>(setting: &mut Option<T>, asked: Option<&Sourced<T>>) {
    if let Some(asked) = asked {
        *setting = Some(asked.value.clone());
    }
}

/// What a new run is asked to be governed by.
pub(crate) fn of_run(config: Layer, flags: &Governing) -> Layer {
    Layer::from(flags).over(config)
}

/// What a run that goes on is asked to be governed by. It keeps what governed it at its start: a
/// file must not undo a flag. Only waiting is decided anew.
pub(crate) fn of_resume(config: Layer, flags: &Governing) -> Layer {
    let waiting = Layer { no_wait: config.no_wait, ..Layer::default() };
    Layer::from(flags).over(waiting)
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
