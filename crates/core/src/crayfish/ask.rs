//! What a backend is sent for an agent step: everything in one message, so that nobody has to know more.

use serde_json::{Value, json};

use crate::ids::AgentId;

use super::envelope::AgentRequest;
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

/// The message for what an agent step asks of its caller.
pub fn message(request: &AgentRequest) -> String {
    let mut envelope = json!({
        "task": {
            "stepId": request.key.step.as_str(),
            "attempt": request.attempt,
            "maxAttempts": request.max_attempts,
        },
        "instructions": request.prompt,
        "outputSchema": request.schema,
    });
    if let Some(input) = &request.input {
        envelope["input"] = input.clone();
    }
    complain(&mut envelope, &request.validation_errors);
    told(&envelope)
}

/// Adds what was wrong with the attempt before.
fn complain(envelope: &mut Value, errors: &[Problem]) {
    if !errors.is_empty() {
        let errors: Vec<String> = errors.iter().map(Problem::to_string).collect();
        envelope["retryContext"] = json!({ "validationErrors": errors });
    }
}

fn told(envelope: &Value) -> String {
    format!("{RULES}\n{envelope:#}\n")
}

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
        complain(&mut envelope, flow.complaints.get(key).map_or(&[], Vec::as_slice));
        Some(told(&envelope))
    }
}
