//! Where a call works.

use std::collections::BTreeMap;
use std::path::PathBuf;

use raymond_core::crayfish::{ErrorCode, Reply};

/// Where the calls of a host may work.
#[derive(Debug, Clone, Default)]
pub struct Workspaces {
    /// The one that its host passes; it wins.
    pub given: Option<PathBuf>,
    /// Those of the configured agents, by `agentId`.
    pub agents: BTreeMap<String, PathBuf>,
    /// Where the host is: for everybody when no agent is configured.
    pub here: PathBuf,
}

impl Workspaces {
    /// The workspace of a call, absolute.
    pub(super) fn of(&self, agent: Option<&str>) -> Result<PathBuf, Box<Reply>> {
        let unknown =
            |message| Err(Box::new(Reply::failed(ErrorCode::UnknownAgent, message, vec![])));
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
        check(&here, Some("anybody"), Ok("/here"));
        let agents = [("a".to_owned(), "/a".into()), ("b".to_owned(), "/b".into())].into();
        let configured = Workspaces { agents, ..here };
        check(&configured, Some("b"), Ok("/b"));
        check(&configured, Some("c"), Err(r#"no agent "c" is configured (configured: a, b)"#));
        check(&configured, None, Err("set `agentId` to choose a workspace: a, b"));
        let given = Workspaces { given: Some("/given".into()), ..configured };
        check(&given, Some("c"), Ok("/given"));
    }
}
