//! The command line and the environment of the client.
//!
//! The prompt goes through stdin. Options that a subcommand does not accept come before it: the
//! client accepts sandbox, directory and schema only there.

use std::ffi::OsString;
use std::path::Path;

use raymond_core::run::permissions::{Checks, Permissions};

use super::preflight;
use crate::contract::PromptRequest;
use crate::headless::{ArgumentList, SessionStep};

/// Returns the arguments of a client for this step.
pub(super) fn arguments(
    request: &PromptRequest,
    step: &SessionStep,
    schema: Option<&Path>,
) -> Vec<OsString> {
    let mut list = ArgumentList::default();
    list.add(["exec", "--json", "--color", "never", "--skip-git-repo-check"]);
    // A goal outlives its turn: the client would continue it by itself and mention it in the next
    // turn.
    list.add(["-c", "features.goals=false"]);
    list.joined("--cd", &request.cwd);
    permissions(&mut list, &request.permissions);
    list.each("--add-dir", &request.extras.add_dirs);
    if let Some(model) = &request.model {
        list.joined("--model", model);
    }
    if let Some(effort) = &request.effort {
        configured(&mut list, "model_reasoning_effort", effort);
    }
    if let Some(text) = &request.extras.append_system_prompt {
        configured(&mut list, "developer_instructions", text);
    }
    if let Some(file) = schema {
        list.joined("--output-schema", file);
    }
    match step {
        SessionStep::Open(_) => {}
        SessionStep::Resume(id) => list.subcommand("resume", id.as_str()),
        SessionStep::Branch { from, .. } => list.subcommand("fork", from.as_str()),
    }
    list.add(["-"]);
    list.finish()
}

/// Adds the permissions.
fn permissions(list: &mut ArgumentList, permissions: &Permissions) {
    // No user is present to approve anything, so everything that the sandbox forbids fails, and the
    // model sees the failure.
    match permissions.checks {
        Checks::Kept => {
            list.add(["--sandbox", preflight::sandbox(permissions.mode.as_deref())]);
            configured(list, "approval_policy", "never");
        }
        Checks::Skipped => list.add(["--dangerously-bypass-approvals-and-sandbox"]),
    }
}

/// Adds a configuration text, quoted as TOML. The client takes a value that is not TOML literally,
/// including its quotation marks.
fn configured(list: &mut ArgumentList, key: &'static str, value: &str) {
    // TOML reads every escape that JSON writes, but it forbids DEL, the only control character that
    // JSON does not escape.
    let quoted = serde_json::Value::from(value).to_string().replace('\u{7f}', "\\u007f");
    list.add(["-c"]);
    list.joined(key, quoted);
}

/// Whether the client would look for a thread of this id.
pub(super) fn is_uuid(id: &str) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = id.split('-').collect();
    let is_hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.iter().map(|group| group.len()).eq(GROUPS) && groups.iter().all(is_hex)
}

#[cfg(test)]
mod tests;
