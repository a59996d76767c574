//! Converts flags to a configuration layer, the topmost one.

use raymond_core::run::permissions::Checks;
use raymond_core::run::settings;

use crate::args::{InterruptedScripts, LostSession, SettingFlags};

use super::layer::{Layer, Origin, Sourced};

fn flag_value<T>(flag: &'static str, value: T) -> Sourced<T> {
    Sourced { value, origin: Origin::Flag(flag) }
}

fn flag_switch(flag: &'static str, is_on: bool) -> Option<Sourced<bool>> {
    is_on.then(|| flag_value(flag, true))
}

fn flag_values(flag: &'static str, values: &[String]) -> Vec<Sourced<String>> {
    values.iter().map(|value| flag_value(flag, value.clone())).collect()
}

impl From<&SettingFlags> for Layer {
    fn from(flags: &SettingFlags) -> Self {
        let lost_session = |what| match what {
            LostSession::Fail => settings::OnLostSession::Fail,
            LostSession::Fresh => settings::OnLostSession::Fresh,
        };
        let scripts = |what| match what {
            InterruptedScripts::Rerun => settings::InterruptedScripts::Rerun,
            InterruptedScripts::Fail => settings::InterruptedScripts::Fail,
        };
        let skipped = flags.dangerously_skip_permissions;
        Self {
            budget: flags.budget.map(|budget| flag_value("--budget", budget.0)),
            strict_budget: flag_switch("--strict-budget", flags.strict_budget),
            model: flags.model.clone().map(|model| flag_value("--model", model)),
            effort: flags.effort.clone().map(|effort| flag_value("--effort", effort)),
            backend: flags.backend.clone().map(|backend| flag_value("--backend", backend)),
            replies: flags.replies.clone().map(|replies| flag_value("--replies", replies)),
            max_parallel: flags.max_parallel.map(|n| flag_value("--max-parallel", n)),
            max_agents: flags.max_agents.map(|n| flag_value("--max-agents", n)),
            reminders: flags.reminders.map(|n| flag_value("--reminders", n)),
            retries: flags.retries.map(|n| flag_value("--retries", n)),
            timeout: flags.timeout.map(|span| flag_value("--timeout", span)),
            idle_timeout: flags.idle_timeout.map(|span| flag_value("--idle-timeout", span)),
            no_wait: flag_switch("--no-wait", flags.no_wait),
            on_lost_session: flags
                .on_lost_session
                .map(|what| flag_value("--on-lost-session", lost_session(what))),
            interrupted_scripts: flags
                .interrupted_scripts
                .map(|what| flag_value("--interrupted-scripts", scripts(what))),
            permission_mode: flags
                .permission_mode
                .clone()
                .map(|mode| flag_value("--permission-mode", mode)),
            allow: flag_values("--allow", &flags.allow),
            deny: flag_values("--deny", &flags.deny),
            checks: skipped.then(|| flag_value("--dangerously-skip-permissions", Checks::Skipped)),
            ..Self::default()
        }
    }
}
