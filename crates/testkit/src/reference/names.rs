//! Names of states as tags write them, names of workers, and directories.

use raymond_core::ids::{AgentId, StateName};

use super::workflow::Workflow;

/// Returns the state that a target names, if exactly one state that this platform can run matches.
pub(super) fn resolve(workflow: &Workflow, target: &str) -> Option<StateName> {
    // Targets come from a model, so a name that could be a path matches no state.
    let is_path = |c: char| matches!(c, '/' | '\\' | ':') || c.is_control();
    if target == "." || target == ".." || target.contains(is_path) {
        return None;
    }
    let runnable = || workflow.states.keys().filter(|state| can_run(state));
    // A full name wins over stems, so that `T2.md` is never ambiguous.
    if let Some(state) = runnable().find(|state| state.as_str() == target) {
        return Some(state.clone());
    }
    let mut candidates = runnable().filter(|state| stem(state) == target);
    let first = candidates.next()?;
    candidates.next().is_none().then(|| first.clone())
}

fn can_run(state: &StateName) -> bool {
    let extension = state.as_str().rsplit_once('.').map(|(_, ending)| ending);
    if cfg!(windows) {
        matches!(extension, Some("md" | "bat" | "ps1"))
    } else {
        matches!(extension, Some("md" | "sh"))
    }
}

pub(super) fn stem(state: &StateName) -> &str {
    let name = state.as_str();
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Returns the name of the parent's `n`th worker, which starts at `target`.
pub(super) fn worker(parent: &AgentId, target: &StateName, n: u32) -> AgentId {
    let mut name = format!("{parent}_");
    // Written from the rule: at most six characters, in lower case, everything else as `_`.
    for character in stem(target).chars().take(6) {
        let lower = character.to_ascii_lowercase();
        name.push(if lower.is_ascii_lowercase() { lower } else { '_' });
    }
    AgentId::new(format!("{name}{n}"))
}

/// Resolves `cd` from a directory; `None` if the result does not exist.
pub(super) fn directory(workflow: &Workflow, cwd: &str, cd: &str) -> Option<String> {
    let path = if cd.starts_with('/') { cd.to_owned() } else { format!("{cwd}/{cd}") };
    // By text alone: the directories of the reference have no links.
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let path = format!("/{}", parts.join("/"));
    workflow.directories.contains(&path).then_some(path)
}
