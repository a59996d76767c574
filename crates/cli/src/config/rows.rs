//! Lists every setting with its value and its origin, for `raymond config`.

use std::time::Duration;

use raymond_backends::claude::DEFAULT_MODE;
use raymond_backends::headless::ClientTimeouts;
use raymond_core::budget::Micros;
use raymond_core::prices::Price;
use raymond_core::run::Settings;
use raymond_core::time::Span;
use serde::Serialize;
use serde_json::{Value, json};

use super::keys::{HOMES, LOST_SESSION, SCRIPTS};
use super::layer::{Layer, Origin, Sourced};

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) key: String,
    /// The value as a file would contain it; null if nothing is set.
    pub(crate) value: Value,
    /// The value for display.
    #[serde(skip)]
    pub(crate) text: String,
    pub(crate) origin: String,
}

impl Row {
    fn new(key: &str, value: Value, origin: &Origin) -> Self {
        let text = match &value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(words) => {
                words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        };
        Self { key: key.to_owned(), value, text, origin: origin.to_string() }
    }
}

/// Returns all settings in the order of the documentation.
pub(crate) fn rows(config: &Layer) -> Vec<Row> {
    let default = Settings::default();
    let idle =
        Span(Duration::as_millis(&ClientTimeouts::default().idle).try_into().unwrap_or(u64::MAX));
    let span = |span: &Span| json!(span.to_string());
    let mut rows = vec![
        budget(config.budget.as_ref(), default.budget),
        plain("strict_budget", config.strict_budget.as_ref(), Some(&default.strict_budget)),
        plain("model", config.model.as_ref(), None),
        plain("effort", config.effort.as_ref(), None),
        plain("backend", config.backend.as_ref(), Some(&default.backend.to_string())),
        plain("replies", config.replies.as_ref(), None),
        plain("max_parallel", config.max_parallel.as_ref(), Some(&default.max_parallel)),
        plain("max_agents", config.max_agents.as_ref(), Some(&default.max_agents)),
        plain("reminders", config.reminders.as_ref(), Some(&default.reminders)),
        plain("retries", config.retries.as_ref(), Some(&default.retries)),
        row("timeout", config.timeout.as_ref(), Value::Null, span),
        row("idle_timeout", config.idle_timeout.as_ref(), json!(idle.to_string()), span),
        plain("no_wait", config.no_wait.as_ref(), Some(&default.no_wait)),
        named("on_lost_session", config.on_lost_session.as_ref(), &LOST_SESSION),
        named("interrupted_scripts", config.interrupted_scripts.as_ref(), &SCRIPTS),
        plain("permission_mode", config.permission_mode.as_ref(), Some(&DEFAULT_MODE.to_owned())),
    ];
    rows.extend(several("allow", &config.allow));
    rows.extend(several("deny", &config.deny));
    let names = |names: &Option<Vec<String>>| match names {
        Some(names) => json!(names),
        None => json!("inherit"),
    };
    rows.push(row("environment", config.environment.as_ref(), json!("inherit"), names));
    rows.push(named("config_home", config.config_home.as_ref(), &HOMES));
    rows.push(plain("claude", config.claude.as_ref(), Some(&"claude".to_owned())));
    rows.push(plain("codex", config.codex.as_ref(), Some(&"codex".to_owned())));
    rows.extend(config.prices.iter().map(|(model, price)| prices(model, price)));
    rows.extend(config.agents.iter().map(|(id, workspace)| {
        Row::new(&format!("agents.{id}"), json!(workspace.value), &workspace.origin)
    }));
    rows
}

fn row<T>(
    key: &str,
    slot: Option<&Sourced<T>>,
    default: Value,
    value: impl Fn(&T) -> Value,
) -> Row {
    match slot {
        Some(slot) => Row::new(key, value(&slot.value), &slot.origin),
        None => Row::new(key, default, &Origin::Default),
    }
}

fn plain<T: Serialize>(key: &str, slot: Option<&Sourced<T>>, default: Option<&T>) -> Row {
    row(key, slot, json!(default), |value| json!(value))
}

fn budget(slot: Option<&Sourced<Option<Micros>>>, default: Option<Micros>) -> Row {
    let value = |cap: &Option<Micros>| match cap {
        Some(cap) => json!(cap.dollars()),
        None => json!("none"),
    };
    let cap = slot.map_or(default, |slot| slot.value);
    let text = cap.map_or_else(|| "none".to_owned(), |cap| cap.to_string());
    Row { text, ..row("budget", slot, value(&default), value) }
}

/// Returns the row of a choice; the first choice is the default.
fn named<T: PartialEq>(key: &str, slot: Option<&Sourced<T>>, choices: &[(&str, T)]) -> Row {
    let name =
        |value: &T| choices.iter().find(|(_, choice)| choice == value).map(|(name, _)| *name);
    match slot {
        Some(slot) => Row::new(key, json!(name(&slot.value)), &slot.origin),
        None => Row::new(key, json!(choices.first().map(|(name, _)| name)), &Origin::Default),
    }
}

/// Returns one row for each entry of a list, because each has its own origin.
fn several(key: &str, list: &[Sourced<String>]) -> Vec<Row> {
    if list.is_empty() {
        return vec![Row::new(key, Value::Null, &Origin::Default)];
    }
    list.iter().map(|entry| Row::new(key, json!(entry.value), &entry.origin)).collect()
}

fn prices(model: &str, price: &Sourced<Price>) -> Row {
    let Price { input, output, cache_write, cache_read } = &price.value;
    let text = format!(
        "input {input}, output {output}, cache_write {cache_write}, cache_read {cache_read}"
    );
    let dollars = |amount: &Micros| amount.dollars();
    let value = json!({
        "input": dollars(input), "output": dollars(output),
        "cache_write": dollars(cache_write), "cache_read": dollars(cache_read),
    });
    Row { text, ..Row::new(&format!("prices.{model}"), value, &price.origin) }
}
