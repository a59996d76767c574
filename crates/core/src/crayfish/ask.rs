//! What a backend is sent for an agent step: everything in one message, so that nobody has to know more.

use serde_json::{Value, json};

use crate::ids::AgentId;

use super::envelope::AgentRequest;
use super::key::Key;
use super::problem::Problem;
use super::program::StepsProgram;
use super::render;
use super::state::StepsState;

/// What the model has to keep to.
const RULES: &str = "Answer the task below with one JSON value.\n\
    - Output STRICT JSON only: no markdown, no explanation.\n\
    - It MUST validate against `outputSchema`.\n\
    - If `retryContext.validationErrors` is there, fix those errors first.\n";

/// What an agent step asks of its caller, as a message for a model.
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
    if !request.validation_errors.is_empty() {
        let errors: Vec<String> =
            request.validation_errors.iter().map(Problem::to_string).collect();
        envelope["retryContext"] = json!({ "validationErrors": errors });
    }
    format!("{RULES}\n{envelope:#}\n")
}

impl StepsProgram {
    /// What the caller is asked for by the agent step that a branch is at; its schema needs no other.
    pub fn request(
        &self,
        flow: &StepsState,
        (agent, key): (&AgentId, &Key),
        schema: &Value,
    ) -> Option<AgentRequest> {
        let (asks, branch) = (self.agent(key)?, flow.branches.get(agent)?);
        let question = render::agent(asks, &self.steps().scope(flow, branch)).ok()?;
        Some(AgentRequest {
            run: None,
            key: key.clone(),
            prompt: question.prompt,
            input: question.input,
            schema: schema.clone(),
            attempt: flow.attempts.get(key).copied().unwrap_or(1),
            max_attempts: self.tries(key),
            assignee: asks.assignee.clone(),
            session: asks.session.clone(),
            validation_errors: flow.complaints.get(key).cloned().unwrap_or_default(),
        })
    }

    /// The same as a message for a model.
    pub fn message(
        &self,
        flow: &StepsState,
        of: (&AgentId, &Key),
        schema: &Value,
    ) -> Option<String> {
        Some(message(&self.request(flow, of, schema)?))
    }
}

#[cfg(test)]
mod tests;
