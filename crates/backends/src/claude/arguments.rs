//! What the client is told on its command line and in its environment.
//!
//! The prompt is not here: it goes through stdin, which has no limit that matters and which no other
//! user can read. Every value is joined to its flag with `=`, because a model named
//! `--dangerously-skip-permissions` must not become a flag, and because flags that take lists would
//! swallow whatever follows.

use std::ffi::OsString;

use raymond_core::budget::Micros;
use raymond_core::run::permissions::{Checks, Permissions};
use raymond_core::workflow::environment::is_ours;

use crate::contract::Request;
use crate::headless::{ArgumentList, SessionStep};

/// The mode of a client of which nobody said anything.
pub const DEFAULT_MODE: &str = "acceptEdits";

/// How often the client itself tries again.
const RETRIES: (&str, &str) = ("CLAUDE_CODE_MAX_RETRIES", "2");

/// What a client sets for whatever it starts. A run inside a client is none of its tools.
const OUTER_CLIENT_VARIABLES: [&str; 3] =
    ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID"];

/// The arguments of a client that takes this step.
pub(super) fn arguments(request: &Request, step: &SessionStep) -> Vec<OsString> {
    let mut list = ArgumentList::default();
    list.add(["-p", "--output-format", "stream-json", "--verbose"]);
    session(&mut list, step);
    permissions(&mut list, &request.permissions);
    let cap = request.started.cap.map(dollars);
    for (flag, value) in
        [("--model", &request.model), ("--effort", &request.effort), ("--max-budget-usd", &cap)]
    {
        if let Some(value) = value {
            list.joined(flag, value);
        }
    }
    if let Some(schema) = &request.schema {
        list.joined("--json-schema", schema.to_string());
    }
    let extras = &request.extras;
    list.each("--add-dir", &extras.add_dirs);
    list.each("--mcp-config", extras.mcp_config.as_slice());
    if let Some(text) = &extras.append_system_prompt {
        list.joined("--append-system-prompt", text);
        // A session keeps the system prompt that it began with, and this is another state.
        if step.required_session().is_some() {
            list.add(["--system-prompt-snapshot", "off"]);
        }
    }
    list.finish()
}

/// What the environment of a client has besides what it inherits.
pub(super) fn environment(
    request: &Request,
    inherited: impl Fn(&str) -> bool,
) -> Vec<(OsString, OsString)> {
    let handed_on = |name: &str| {
        let listed = request.environment.as_ref();
        inherited(name) && listed.is_none_or(|names| names.iter().any(|listed| listed == name))
    };
    let (name, count) = RETRIES;
    let retries = (!handed_on(name)).then(|| (name.into(), count.into()));
    let home = request.started.config_home.as_ref();
    let home = home.map(|home| ("CLAUDE_CONFIG_DIR".into(), home.clone().into_os_string()));
    retries.into_iter().chain(home).collect()
}

/// What of these variables a client must not see: they tell of another turn, or of another client.
pub(super) fn foreign_variables(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let foreign_variables = |name: &str| is_ours(name) || OUTER_CLIENT_VARIABLES.contains(&name);
    names.filter(|name| name.to_str().is_some_and(foreign_variables)).collect()
}

fn session(list: &mut ArgumentList, step: &SessionStep) {
    match step {
        SessionStep::Open(id) => list.joined("--session-id", id.as_str()),
        SessionStep::Resume(id) => list.joined("--resume", id.as_str()),
        SessionStep::Branch { from, to } => {
            list.joined("--resume", from.as_str());
            list.add(["--fork-session"]);
            list.joined("--session-id", to.as_str());
        }
    }
}

fn permissions(list: &mut ArgumentList, permissions: &Permissions) {
    match permissions.checks {
        Checks::Kept => {
            let mode = permissions.mode.as_deref().unwrap_or(DEFAULT_MODE);
            list.joined("--permission-mode", mode);
        }
        Checks::Skipped => list.add(["--dangerously-skip-permissions"]),
    }
    list.each("--allowedTools", &permissions.allow);
    list.each("--disallowedTools", &permissions.deny);
}

/// The client takes no cap of nothing.
fn dollars(amount: Micros) -> String {
    let Micros(micros) = amount.max(Micros(1));
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests;
