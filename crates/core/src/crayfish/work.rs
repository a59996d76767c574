//! What a run of steps is made of, beside where it stands: its document, and its variables.

use serde_json::{Map, Value as Json};

use crate::ids::AgentId;
use crate::machine::Agent as Strand;

use super::document::{Agent, Document, Exec, Kind, StepIndex};
use super::flow::Flow;
use super::key::Key;
use super::render::{self, Call, Unrendered};
use super::walk::Steps;

/// A document to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The document.
    pub document: Document,
    /// Its variables, with those of the request over them.
    pub vars: Map<String, Json>,
}

impl Work {
    /// For the interpreter.
    pub fn steps(&self) -> Steps<'_> {
        Steps { document: &self.document, vars: &self.vars }
    }

    /// The step of a key.
    pub fn step(&self, key: &Key) -> Option<StepIndex> {
        self.document.find(key.step.as_str())
    }

    /// The agent step of a key.
    pub fn agent(&self, key: &Key) -> Option<&Agent> {
        match &self.document.step(self.step(key)?).kind {
            Kind::Agent(agent) => Some(agent),
            Kind::Exec(_) | Kind::If(_) | Kind::ForEach(_) | Kind::While(_) => None,
        }
    }

    /// Whether a key is one of a loop.
    pub fn is_loop(&self, key: &Key) -> bool {
        let kind = self.step(key).map(|step| &self.document.step(step).kind);
        matches!(kind, Some(Kind::ForEach(_) | Kind::While(_)))
    }

    /// How often a step may be tried, in all.
    pub fn tries(&self, key: &Key) -> u32 {
        match self.step(key).map(|step| &self.document.step(step).kind) {
            Some(Kind::Exec(exec)) => exec.retries.get(),
            Some(Kind::Agent(agent)) => agent.retries.get(),
            Some(Kind::If(_) | Kind::ForEach(_) | Kind::While(_)) | None => 1,
        }
    }

    /// An exec step with its expressions filled in where a strand is.
    pub fn call(&self, flow: &Flow, agent: &AgentId, key: &Key) -> Option<(StepIndex, Exec, Call)> {
        let (index, strand) = (self.step(key)?, flow.strands.get(agent)?);
        let Kind::Exec(exec) = &self.document.step(index).kind else { return None };
        let scope = self.steps().scope(flow, strand);
        let call = render::exec(exec, &self.document.env, &scope).ok()?;
        Some((index, exec.clone(), call))
    }

    /// Whether what a step is written with can be filled in where a strand is.
    pub(crate) fn renders(
        &self,
        flow: &Flow,
        agent: &AgentId,
        step: StepIndex,
    ) -> Result<(), Unrendered> {
        let Some(strand) = flow.strands.get(agent) else { return Ok(()) };
        let scope = self.steps().scope(flow, strand);
        match &self.document.step(step).kind {
            Kind::Exec(exec) => render::exec(exec, &self.document.env, &scope).map(|_| ()),
            Kind::Agent(agent) => render::agent(agent, &scope).map(|_| ()),
            Kind::If(_) | Kind::ForEach(_) | Kind::While(_) => Ok(()),
        }
        .map_err(|unrendered| unrendered.of_document(&self.document.pointer(step)))
    }
}

/// The key of the step that a strand is at.
pub fn key_of(strand: &Strand) -> Option<Key> {
    strand.visit.state.as_str().parse().ok()
}
