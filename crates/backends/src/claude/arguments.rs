//! The command line and the environment of the client.
//!
//! The prompt is not among the arguments. It goes through stdin, which has no relevant size limit
//! and which other users cannot read. Every value is joined to its flag with `=`: a model named
//! `--dangerously-skip-permissions` must not become a flag, and flags that take lists would consume
//! the following arguments.

use std::ffi::OsString;

use raymond_core::budget::Micros;
use raymond_core::run::permissions::{Checks, Permissions};

use crate::contract::PromptRequest;
use crate::headless::{ArgumentList, SessionStep};

/// The permission mode if no setting names one.
pub const DEFAULT_MODE: &str = "acceptEdits";

/// How often the client retries a failed request by itself. Raymond retries the turn afterwards.
const RETRIES: (&str, &str) = ("CLAUDE_CODE_MAX_RETRIES", "2");

/// Returns the arguments of a client for this step.
pub(super) fn arguments(request: &PromptRequest, step: &SessionStep) -> Vec<OsString> {
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
        // A resumed session keeps the system prompt with which it began, but this state has its
        // own.
        if step.required_session().is_some() {
            list.add(["--system-prompt-snapshot", "off"]);
        }
    }
    list.finish()
}

/// Returns the variables to set in addition to the inherited ones.
pub(super) fn environment(
    request: &PromptRequest,
    inherited: impl Fn(&str) -> bool,
) -> Vec<(OsString, OsString)> {
    let handed_on = |name: &str| {
        let listed = request.environment.as_ref();
        inherited(name) && listed.is_none_or(|names| names.iter().any(|listed| listed == name))
    };
    // A value from the user wins over this default.
    let (name, count) = RETRIES;
    let retries = (!handed_on(name)).then(|| (name.into(), count.into()));
    let home = request.started.config_home.as_ref();
    let home = home.map(|home| ("CLAUDE_CONFIG_DIR".into(), home.clone().into_os_string()));
    retries.into_iter().chain(home).collect()
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

/// Formats a cap in dollars.
fn dollars(amount: Micros) -> String {
    // The client rejects a cap of zero, so the smallest cap is one millionth.
    let Micros(micros) = amount.max(Micros(1));
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests;
