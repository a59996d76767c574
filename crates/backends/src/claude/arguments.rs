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
use crate::headless::{Step, Words};

/// The mode of a client of which nobody said anything.
pub const DEFAULT_MODE: &str = "acceptEdits";

/// How often the client itself tries again.
const RETRIES: (&str, &str) = ("CLAUDE_CODE_MAX_RETRIES", "2");

/// What a client sets for whatever it starts. A run inside a client is none of its tools.
const OF_AN_OUTER_CLIENT: [&str; 3] =
    ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID"];

/// The arguments of a client that takes this step.
pub(super) fn arguments(request: &Request, step: &Step) -> Vec<OsString> {
    let mut words = Words::default();
    words.add(["-p", "--output-format", "stream-json", "--verbose"]);
    session(&mut words, step);
    permissions(&mut words, &request.permissions);
    let cap = request.started.cap.map(dollars);
    for (flag, value) in
        [("--model", &request.model), ("--effort", &request.effort), ("--max-budget-usd", &cap)]
    {
        if let Some(value) = value {
            words.joined(flag, value);
        }
    }
    if let Some(schema) = &request.schema {
        words.joined("--json-schema", schema.to_string());
    }
    let extras = &request.extras;
    words.each("--add-dir", &extras.add_dirs);
    words.each("--mcp-config", extras.mcp_config.as_slice());
    if let Some(text) = &extras.append_system_prompt {
        words.joined("--append-system-prompt", text);
        // A session keeps the system prompt that it began with, and this is another state.
        if step.needs().is_some() {
            words.add(["--system-prompt-snapshot", "off"]);
        }
    }
    words.finish()
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
pub(super) fn foreign(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let foreign = |name: &str| is_ours(name) || OF_AN_OUTER_CLIENT.contains(&name);
    names.filter(|name| name.to_str().is_some_and(foreign)).collect()
}

fn session(words: &mut Words, step: &Step) {
    match step {
        Step::Open(id) => words.joined("--session-id", id.as_str()),
        Step::Resume(id) => words.joined("--resume", id.as_str()),
        Step::Branch { from, to } => {
            words.joined("--resume", from.as_str());
            words.add(["--fork-session"]);
            words.joined("--session-id", to.as_str());
        }
    }
}

fn permissions(words: &mut Words, permissions: &Permissions) {
    match permissions.checks {
        Checks::Kept => {
            let mode = permissions.mode.as_deref().unwrap_or(DEFAULT_MODE);
            words.joined("--permission-mode", mode);
        }
        Checks::Skipped => words.add(["--dangerously-skip-permissions"]),
    }
    words.each("--allowedTools", &permissions.allow);
    words.each("--disallowedTools", &permissions.deny);
}

/// The client takes no cap of nothing.
fn dollars(amount: Micros) -> String {
    let Micros(micros) = amount.max(Micros(1));
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests;
