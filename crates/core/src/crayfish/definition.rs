//! The unchanging part of a run of steps: its document and its variables.

use serde_json::{Map, Value as Json};

use crate::ids::AgentId;

use super::document::{Agent, Document, Kind, StepIndex};
use super::key::Key;
use super::render::{self, ExecCall, Unrendered};
use super::state::StepsState;
use super::walk::Interpreter;

/// A checked document with the variables of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct StepsDefinition {
    pub document: Document,
    /// Its variables, replaced by those of the request where both exist.
    pub vars: Map<String, Json>,
}

impl StepsDefinition {
    /// Returns the view for the interpreter.
    pub fn interpreter(&self) -> Interpreter<'_> {
        Interpreter { document: &self.document, vars: &self.vars }
    }

    pub fn step(&self, key: &Key) -> Option<StepIndex> {
        self.document.find(key.step.as_str())
    }

    pub fn agent(&self, key: &Key) -> Option<&Agent> {
        match &self.document.step(self.step(key)?).kind {
            Kind::Agent(agent) => Some(agent),
            Kind::Exec(_) | Kind::If(_) | Kind::ForEach(_) | Kind::While(_) => None,
        }
    }

    pub fn is_loop(&self, key: &Key) -> bool {
        let kind = self.step(key).map(|step| &self.document.step(step).kind);
        matches!(kind, Some(Kind::ForEach(_) | Kind::While(_)))
    }

    /// Returns how many attempts a step has in all.
    pub fn tries(&self, key: &Key) -> u32 {
        match self.step(key).map(|step| &self.document.step(step).kind) {
            Some(Kind::Exec(exec)) => exec.retries.get(),
            Some(Kind::Agent(agent)) => agent.retries.get(),
            Some(Kind::If(_) | Kind::ForEach(_) | Kind::While(_)) | None => 1,
        }
    }

    /// Returns an exec step with its expressions filled in at the position of a branch.
    pub fn call(&self, state: &StepsState, agent: &AgentId, key: &Key) -> Option<ExecCall> {
        let (index, branch) = (self.step(key)?, state.branches.get(agent)?);
        let Kind::Exec(exec) = &self.document.step(index).kind else { return None };
        let scope = self.interpreter().scope(state, branch);
        // No error is possible: `renders` was checked on the same values when the step was entered.
        render::exec(exec, &self.document.env, &scope).ok()
    }

    /// Checks that the expressions of a step can be filled in at the position of a branch.
    pub(crate) fn renders(
        &self,
        state: &StepsState,
        agent: &AgentId,
        step: StepIndex,
    ) -> Result<(), Unrendered> {
        let Some(branch) = state.branches.get(agent) else { return Ok(()) };
        let scope = self.interpreter().scope(state, branch);
        match &self.document.step(step).kind {
            Kind::Exec(exec) => render::exec(exec, &self.document.env, &scope).map(|_| ()),
            Kind::Agent(agent) => render::agent(agent, &scope).map(|_| ()),
            Kind::If(_) | Kind::ForEach(_) | Kind::While(_) => Ok(()),
        }
        .map_err(|unrendered| unrendered.of_document(&self.document.pointer(step)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crayfish::render::Command;
    use crate::decide::tests::steps::steps;
    use crate::run::program::Answers;

    #[test]
    fn program_is_rendered_with_values_of_its_branch() {
        let exec = json!({ "id": "a", "kind": "exec", "shell": "echo {{locals.x}}" });
        let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
        let each = json!({
            "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x",
            "body": [exec, asks],
        });
        let mut play = steps(Answers::Caller, &json!([each]));
        play.start();
        let steps = play.definition.steps.as_deref().unwrap();
        let state = play.run.program.steps().unwrap();
        let called = |key: &str| steps.call(state, &AgentId::main(), &key.parse().unwrap());
        assert_eq!(called("l[0].a").unwrap().command, Command::Shell("echo 1".to_owned()));
        assert_eq!(called("l[0].v"), None);
        assert_eq!(called("gone"), None);
    }

    #[test]
    fn loops_are_distinguished_from_other_steps() {
        let until = json!({ "op": "exists", "path": "$.vars.list" });
        let all = json!([
            { "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x", "body": [] },
            { "id": "w", "kind": "while", "maxIters": 1, "until": until, "body": [] },
            { "id": "g", "kind": "if", "cond": until, "then": [] },
            { "id": "a", "kind": "exec", "shell": "true" },
        ]);
        let play = steps(Answers::Caller, &all);
        let steps = play.definition.steps.unwrap();
        let is_loop = |key: &str| steps.is_loop(&key.parse().unwrap());
        assert_eq!(["l", "w", "g", "a", "gone"].map(is_loop), [true, true, false, false, false]);
    }
}
