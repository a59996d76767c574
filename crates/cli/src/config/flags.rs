//! Flags, as the layer over everything else.

use raymond_core::run::permissions::Checks;
use raymond_core::run::settings;

use crate::args::{Governing, InterruptedScripts, LostSession};

use super::layer::{Layer, Origin, Sourced};

fn said<T>(flag: &'static str, value: T) -> Sourced<T> {
    Sourced { value, origin: Origin::Flag(flag) }
}

fn switched(flag: &'static str, is_on: bool) -> Option<Sourced<bool>> {
    is_on.then(|| said(flag, true))
}

fn all(flag: &'static str, values: &[String]) -> Vec<Sourced<String>> {
    values.iter().map(|value| said(flag, value.clone())).collect()
}

impl From<&Governing> for Layer {
    fn from(flags: &Governing) -> Self {
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
            budget: flags.budget.map(|budget| said("--budget", budget.0)),
            strict_budget: switched("--strict-budget", flags.strict_budget),
            model: flags.model.clone().map(|model| said("--model", model)),
            effort: flags.effort.clone().map(|effort| said("--effort", effort)),
            backend: flags.backend.clone().map(|backend| said("--backend", backend)),
            replies: flags.replies.clone().map(|replies| said("--replies", replies)),
            max_parallel: flags.max_parallel.map(|n| said("--max-parallel", n)),
            max_agents: flags.max_agents.map(|n| said("--max-agents", n)),
            reminders: flags.reminders.map(|n| said("--reminders", n)),
            retries: flags.retries.map(|n| said("--retries", n)),
            timeout: flags.timeout.map(|span| said("--timeout", span)),
            idle_timeout: flags.idle_timeout.map(|span| said("--idle-timeout", span)),
            no_wait: switched("--no-wait", flags.no_wait),
            on_lost_session: flags
                .on_lost_session
                .map(|what| said("--on-lost-session", lost_session(what))),
            interrupted_scripts: flags
                .interrupted_scripts
                .map(|what| said("--interrupted-scripts", scripts(what))),
            permission_mode: flags
                .permission_mode
                .clone()
                .map(|mode| said("--permission-mode", mode)),
            allow: all("--allow", &flags.allow),
            deny: all("--deny", &flags.deny),
            checks: skipped.then(|| said("--dangerously-skip-permissions", Checks::Skipped)),
            ..Self::default()
        }
    }
}
