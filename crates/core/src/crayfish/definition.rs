//! The unchanging part of a run of steps: its document and its variables.

use std::borrow::Cow;

use serde_json::{Map, Value as Json};

use crate::ids::AgentId;

use super::document::{AgentStep, Document, StepIndex, StepKind};
use super::key::StepKey;
use super::path::{Namespace, Namespaces, Path};
use super::render::{self, ExecCall, RenderedStep, Unrendered};
use super::state::{Branch, Position, StepsState};
use super::template::Unfilled;
use super::walk::{Interpreter, Scope};

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

    pub fn step(&self, key: &StepKey) -> Option<StepIndex> {
        self.document.find(key.step.as_str())
    }

    pub fn agent(&self, key: &StepKey) -> Option<&AgentStep> {
        match &self.document.step(self.step(key)?).kind {
            StepKind::Agent(agent) => Some(agent),
            StepKind::Exec(_) | StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_) => None,
        }
    }

    pub fn is_loop(&self, key: &StepKey) -> bool {
        self.step(key).is_some_and(|step| self.document.step(step).kind.is_loop())
    }

    /// Returns how many attempts a step has in all.
    pub fn tries(&self, key: &StepKey) -> u32 {
        match self.step(key).map(|step| &self.document.step(step).kind) {
            Some(StepKind::Exec(exec)) => exec.retries.get(),
            Some(StepKind::Agent(agent)) => agent.retries.get(),
            Some(StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_)) | None => 1,
        }
    }

    /// Returns the last attempt that an agent step has; each resume after a failure adds some.
    pub fn last_attempt(&self, state: &StepsState, key: &StepKey) -> u32 {
        state.limits.get(key).copied().unwrap_or_else(|| self.tries(key))
    }

    /// Returns the output of a document that has ended; `None` if it has none.
    pub fn output(&self, state: &StepsState) -> Option<Result<Json, Unfilled>> {
        let seen = state.conclusion.clone()?;
        let (born, loops, at) = (Vec::new(), Vec::new(), Position::Start);
        self.output_at(state, &Branch { number: 0, parent: None, born, loops, at, seen })
    }

    /// Returns the output of a document as a branch sees it.
    pub(crate) fn output_at(
        &self,
        state: &StepsState,
        branch: &Branch,
    ) -> Option<Result<Json, Unfilled>> {
        let scope = self.interpreter().scope(state, branch);
        Some(self.document.output.as_ref()?.fill(&OrNull(scope)))
    }

    /// Returns the program of an exec step that a branch is in.
    pub fn call(&self, state: &StepsState, agent: &AgentId, key: &StepKey) -> Option<ExecCall> {
        match self.render_entered(state, agent, key)? {
            RenderedStep::Exec(call) => Some(call),
            RenderedStep::Agent(_) => None,
        }
    }

    /// Renders a step that a branch has entered.
    pub(super) fn render_entered(
        &self,
        state: &StepsState,
        agent: &AgentId,
        key: &StepKey,
    ) -> Option<RenderedStep> {
        let rendered = self.render(state, agent, self.step(key)?);
        // `render` says why. A turn whose effect were dropped here would never end.
        debug_assert!(rendered.is_ok(), "{key} was entered, but not rendered: {rendered:?}");
        rendered.ok()?
    }

    /// Fills in the expressions of a step at the position of a branch; `None` if it has none.
    ///
    /// A step is rendered when it is entered, because a step without its values must fail before it
    /// waits for a gate, a slot or a budget share. It is rendered again for each attempt and for
    /// each request to the caller. In between nothing is kept: ten thousand branches can wait, and
    /// a rendered step has up to 16 MiB ([`LIMIT`](super::template::LIMIT)), in memory and in every
    /// snapshot. All renderings are equal, also after a crash: a branch in a step sees the same
    /// results as before, and a successful result never changes.
    pub(crate) fn render(
        &self,
        state: &StepsState,
        agent: &AgentId,
        step: StepIndex,
    ) -> Result<Option<RenderedStep>, Unrendered> {
        let Some(branch) = state.branches.get(agent) else { return Ok(None) };
        let scope = self.interpreter().scope(state, branch);
        let rendered = match &self.document.step(step).kind {
            StepKind::Exec(exec) => {
                render::exec(exec, &self.document.env, &scope).map(RenderedStep::Exec)
            }
            StepKind::Agent(agent) => render::agent(agent, &scope).map(RenderedStep::Agent),
            StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_) => return Ok(None),
        };
        let of_document =
            |unrendered: Unrendered| unrendered.of_document(&self.document.pointer(step));
        rendered.map(Some).map_err(of_document)
    }
}

/// A scope in which a path without a value leads to null.
// The output is read at the end of a run, where no `if` could guard a step that was skipped.
struct OrNull<'a>(Scope<'a>);

impl Namespaces for OrNull<'_> {
    fn named(&self, root: Namespace, name: &str) -> Option<&Json> {
        self.0.named(root, name)
    }

    fn lookup(&self, path: &Path) -> Option<Cow<'_, Json>> {
        self.0.lookup(path).or(Some(Cow::Owned(Json::Null)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crayfish::render::StepCommand;
    use crate::decide::tests::steps::steps;
    use crate::run::program::AnswerSource;

    #[test]
    fn program_is_rendered_with_values_of_its_branch() {
        let exec = json!({ "id": "a", "kind": "exec", "shell": "echo {{locals.x}}" });
        let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
        let each = json!({
            "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x",
            "body": [exec, asks],
        });
        let mut play = steps(AnswerSource::Caller, &json!([each]));
        play.start();
        let steps = play.definition.steps.as_deref().unwrap();
        let state = play.run.program.steps().unwrap();
        let called = |key: &str| steps.call(state, &AgentId::main(), &key.parse().unwrap());
        assert_eq!(called("l[0].a").unwrap().command, StepCommand::Shell("echo 1".to_owned()));
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
        let play = steps(AnswerSource::Caller, &all);
        let steps = play.definition.steps.unwrap();
        let is_loop = |key: &str| steps.is_loop(&key.parse().unwrap());
        assert_eq!(["l", "w", "g", "a", "gone"].map(is_loop), [true, true, false, false, false]);
    }
}
