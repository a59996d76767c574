//! What a backend is sent for an agent step: everything in one message, so that nobody has to know more.

use serde_json::{Value, json};

use crate::ids::AgentId;

use super::flow::Flow;
use super::key::Key;
use super::problem::Problem;
use super::render;
use super::work::Work;

/// What the model has to keep to.
const RULES: &str = "Answer the task below with one JSON value.\n\
    - Output STRICT JSON only: no markdown, no explanation.\n\
    - It MUST validate against `outputSchema`.\n\
    - If `retryContext.validationErrors` is there, fix those errors first.\n";

impl Work {
    /// The message for the agent step that a strand is at; its schema needs no other.
    pub fn message(
        &self,
        flow: &Flow,
        agent: &AgentId,
        key: &Key,
        schema: &Value,
    ) -> Option<String> {
        let (asks, strand) = (self.agent(key)?, flow.strands.get(agent)?);
        let question = render::agent(asks, &self.steps().scope(flow, strand)).ok()?;
        let attempt = flow.attempts.get(key).copied().unwrap_or(1);
        let mut envelope = json!({
            "task": { "stepId": key.step.as_str(), "attempt": attempt, "maxAttempts": self.tries(key) },
            "instructions": question.prompt,
            "outputSchema": schema,
        });
        if let Some(input) = question.input {
            envelope["input"] = input;
        }
        let errors = flow.complaints.get(key).filter(|errors| !errors.is_empty());
        if let Some(errors) = errors {
            let errors: Vec<String> = errors.iter().map(Problem::to_string).collect();
            envelope["retryContext"] = json!({ "validationErrors": errors });
        }
        Some(format!("{RULES}\n{envelope:#}\n"))
    }
}
