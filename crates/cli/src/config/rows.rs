//! Every setting with its value and its origin, for `raymond config`.

use raymond_core::prices::Price;
use raymond_core::run::Settings;
use serde::Serialize;

use super::keys::{HOMES, LOST_SESSION, SCRIPTS};
use super::layer::{Layer, Origin, Sourced};

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    pub(crate) key: String,
    /// As a file would say it, without quotes; none when nothing is set.
    pub(crate) value: Option<String>,
    pub(crate) origin: String,
}

/// All settings, in the order in which they are documented.
pub(crate) fn rows(config: &Layer) -> Vec<Row> {
    let default = Settings::default();
    let cap = |cap: Option<_>| cap.map_or_else(|| "none".to_owned(), |cap| format!("{cap}"));
    let mut rows = vec![
        row("budget", config.budget.as_ref(), |value| cap(*value), Some(cap(default.budget))),
        plain("strict_budget", config.strict_budget.as_ref(), Some(&default.strict_budget)),
        plain("model", config.model.as_ref(), None),
        plain("effort", config.effort.as_ref(), None),
        plain("backend", config.backend.as_ref(), Some(&default.backend.to_string())),
        row("replies", config.replies.as_ref(), |path| path.display().to_string(), None),
        plain("max_parallel", config.max_parallel.as_ref(), Some(&default.max_parallel)),
        plain("max_agents", config.max_agents.as_ref(), Some(&default.max_agents)),
        plain("reminders", config.reminders.as_ref(), Some(&default.reminders)),
        plain("retries", config.retries.as_ref(), Some(&default.retries)),
        plain("timeout", config.timeout.as_ref(), None),
        plain("idle_timeout", config.idle_timeout.as_ref(), None),
        plain("no_wait", config.no_wait.as_ref(), Some(&default.no_wait)),
        named("on_lost_session", config.on_lost_session.as_ref(), &LOST_SESSION),
        named("interrupted_scripts", config.interrupted_scripts.as_ref(), &SCRIPTS),
        plain("permission_mode", config.permission_mode.as_ref(), None),
    ];
    rows.extend(several("allow", &config.allow));
    rows.extend(several("deny", &config.deny));
    let names = |names: &Option<Vec<String>>| {
        names.as_ref().map_or_else(|| "inherit".to_owned(), |names| names.join(", "))
    };
    rows.push(row("environment", config.environment.as_ref(), names, Some("inherit".to_owned())));
    rows.push(named("config_home", config.config_home.as_ref(), &HOMES));
    rows.push(plain("claude", config.claude.as_ref(), Some(&"claude".to_owned())));
    for (model, price) in &config.prices {
        rows.push(Row {
            key: format!("prices.{model}"),
            value: Some(prices(&price.value)),
            origin: price.origin.to_string(),
        });
    }
    rows
}

fn row<T>(
    key: &str,
    slot: Option<&Sourced<T>>,
    text: impl Fn(&T) -> String,
    default: Option<String>,
) -> Row {
    let (value, origin) = match slot {
        Some(Sourced { value, origin }) => (Some(text(value)), origin),
        None => (default, &Origin::Default),
    };
    Row { key: key.to_owned(), value, origin: origin.to_string() }
}

fn plain<T: ToString>(key: &str, slot: Option<&Sourced<T>>, default: Option<&T>) -> Row {
    row(key, slot, T::to_string, default.map(T::to_string))
}

/// A choice; the first one is the default.
fn named<T: PartialEq>(key: &str, slot: Option<&Sourced<T>>, choices: &[(&str, T)]) -> Row {
    let name = |value: &T| {
        let chosen = choices.iter().find(|(_, choice)| choice == value);
        chosen.map_or_else(String::new, |(name, _)| (*name).to_owned())
    };
    row(key, slot, name, choices.first().map(|(name, _)| (*name).to_owned()))
}

fn several(key: &str, list: &[Sourced<String>]) -> Vec<Row> {
    let row = |value: Option<String>, origin: &Origin| Row {
        key: key.to_owned(),
        value,
        origin: origin.to_string(),
    };
    if list.is_empty() {
        return vec![row(None, &Origin::Default)];
    }
    list.iter().map(|entry| row(Some(entry.value.clone()), &entry.origin)).collect()
}

fn prices(Price { input, output, cache_write, cache_read }: &Price) -> String {
    format!("input {input}, output {output}, cache_write {cache_write}, cache_read {cache_read}")
}
