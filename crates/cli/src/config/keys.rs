//! The keys of the configuration, shared by files and environment variables.

use raymond_core::run::settings::{ConfigHome, InterruptedScripts, OnLostSession};

use super::layer::{Layer, Origin, Sourced};
use super::value::{ConfigValue, ValueError};

/// Values of `on_lost_session`.
pub(super) const LOST_SESSION: [(&str, OnLostSession); 2] =
    [("fail", OnLostSession::Fail), ("fresh", OnLostSession::Fresh)];
/// Values of `interrupted_scripts`.
pub(super) const SCRIPTS: [(&str, InterruptedScripts); 2] =
    [("rerun", InterruptedScripts::Rerun), ("fail", InterruptedScripts::Fail)];
/// Values of `config_home`.
pub(super) const HOMES: [(&str, ConfigHome); 2] =
    [("shared", ConfigHome::Shared), ("per-agent", ConfigHome::PerAgent)];

impl Layer {
    /// Every key with a single value.
    pub(crate) const KEYS: [&'static str; 22] = [
        "budget",
        "strict_budget",
        "model",
        "effort",
        "backend",
        "replies",
        "max_parallel",
        "max_agents",
        "reminders",
        "retries",
        "timeout",
        "idle_timeout",
        "no_wait",
        "on_lost_session",
        "interrupted_scripts",
        "permission_mode",
        "allow",
        "deny",
        "environment",
        "config_home",
        "claude",
        "codex",
    ];

    /// Sets the value of a key; returns `None` for an unknown key.
    pub(super) fn set(
        &mut self,
        key: &str,
        given: ConfigValue<'_>,
        origin: &Origin,
    ) -> Option<Result<(), ValueError>> {
        Some(match key {
            "budget" => put(&mut self.budget, given.budget(), origin),
            "strict_budget" => put(&mut self.strict_budget, given.switch(), origin),
            "model" => put(&mut self.model, given.text(), origin),
            "effort" => put(&mut self.effort, given.text(), origin),
            "backend" => put(&mut self.backend, given.text(), origin),
            "replies" => put(&mut self.replies, given.path(), origin),
            "max_parallel" => put(&mut self.max_parallel, given.count(1), origin),
            "max_agents" => put(&mut self.max_agents, given.count(1), origin),
            "reminders" => put(&mut self.reminders, given.count(0), origin),
            "retries" => put(&mut self.retries, given.count(0), origin),
            "timeout" => put(&mut self.timeout, given.span(), origin),
            "idle_timeout" => put(&mut self.idle_timeout, given.span(), origin),
            "no_wait" => put(&mut self.no_wait, given.switch(), origin),
            "on_lost_session" => {
                put(&mut self.on_lost_session, given.choice(&LOST_SESSION), origin)
            }
            "interrupted_scripts" => {
                put(&mut self.interrupted_scripts, given.choice(&SCRIPTS), origin)
            }
            "permission_mode" => put(&mut self.permission_mode, given.text(), origin),
            "allow" => add(&mut self.allow, given.list(), origin),
            "deny" => add(&mut self.deny, given.list(), origin),
            "environment" => put(&mut self.environment, given.environment(), origin),
            "config_home" => put(&mut self.config_home, given.choice(&HOMES), origin),
            "claude" => put(&mut self.claude, given.command(), origin),
            "codex" => put(&mut self.codex, given.command(), origin),
            _ => return None,
        })
    }
}

fn put<T>(
    slot: &mut Option<Sourced<T>>,
    value: Result<T, ValueError>,
    origin: &Origin,
) -> Result<(), ValueError> {
    *slot = Some(Sourced { value: value?, origin: origin.clone() });
    Ok(())
}

fn add(
    list: &mut Vec<Sourced<String>>,
    values: Result<Vec<String>, ValueError>,
    origin: &Origin,
) -> Result<(), ValueError> {
    list.extend(values?.into_iter().map(|value| Sourced { value, origin: origin.clone() }));
    Ok(())
}
