//! The workspace of a call: given by the host, configured for an agent, or the current directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use raymond_core::crayfish::{CallReply, ErrorCode};

/// The workspaces of a host.
#[derive(Debug, Clone, Default)]
pub struct Workspaces {
    /// The workspace that the host passes. It takes precedence.
    pub given: Option<PathBuf>,
    /// The workspaces of the configured agents, by `agentId`.
    pub agents: BTreeMap<String, PathBuf>,
    /// The directory of the host, for all calls if no agent is configured.
    pub here: PathBuf,
}

impl Workspaces {
    /// Returns the absolute path of the workspace of a call.
    pub(super) fn of(&self, agent: Option<&str>) -> Result<PathBuf, Box<CallReply>> {
        let unknown =
            |message| Err(Box::new(CallReply::failed(ErrorCode::UnknownAgent, message, vec![])));
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        if self.agents.is_empty() {
            return Ok(self.here.clone());
        }
        let known: Vec<&str> = self.agents.keys().map(String::as_str).collect();
        let known = known.join(", ");
        match agent {
            Some(agent) => match self.agents.get(agent) {
                Some(workspace) => Ok(workspace.clone()),
                None => unknown(format!("no agent {agent:?} is configured (configured: {known})")),
            },
            None => unknown(format!("set `agentId` to choose a workspace: {known}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(workspaces: &Workspaces, agent: Option<&str>, expected: Result<&str, &str>) {
        let found = workspaces.of(agent).map_err(|reply| reply.into_json()["message"].clone());
        let found = found.map(|path| path.display().to_string());
        let expected = expected.map(str::to_owned).map_err(serde_json::Value::from);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_workspace_is_given_or_configured_or_here() {
        let here = Workspaces { here: "/here".into(), ..Workspaces::default() };
        check(&here, None, Ok("/here"));
        check(&here, Some("any"), Ok("/here"));
        let agents = [("a".to_owned(), "/a".into()), ("b".to_owned(), "/b".into())].into();
        let configured = Workspaces { agents, ..here };
        check(&configured, Some("b"), Ok("/b"));
        check(&configured, Some("c"), Err(r#"no agent "c" is configured (configured: a, b)"#));
        check(&configured, None, Err("set `agentId` to choose a workspace: a, b"));
        let given = Workspaces { given: Some("/given".into()), ..configured };
        check(&given, Some("c"), Ok("/given"));
    }
}
