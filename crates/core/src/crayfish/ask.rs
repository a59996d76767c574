//! The message for a backend that answers an agent step.
//!
//! One message contains the task, the schema and the errors of the last attempt, so a backend
//! without any history can answer it.

use std::sync::Arc;

use serde_json::json;

use crate::ids::AgentId;

use super::definition::StepsDefinition;
use super::envelope::AgentRequest;
use super::key::StepKey;
use super::problem::Problem;
use super::render::RenderedStep;
use super::state::StepsState;

/// The instructions before every task.
// docs/crayfish-tool.md asks callers to give their models the same rules.
const RULES: &str = "Answer the task below with one JSON value.\n\
    - Output STRICT JSON only: no markdown, no explanation.\n\
    - It MUST validate against `outputSchema`.\n\
    - If `retryContext.validationErrors` is there, fix those errors first.\n";

/// Returns the request of an agent step as a message for a model.
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
        // Lines and not objects, as in the request that a caller receives.
        let errors: Vec<String> =
            request.validation_errors.iter().map(Problem::to_string).collect();
        envelope["retryContext"] = json!({ "validationErrors": errors });
    }
    format!("{RULES}\n{envelope:#}\n")
}

impl StepsDefinition {
    /// Returns the request of the agent step that a branch is at. The document of a run is pinned
    /// with every `$ref` of its schemas resolved.
    pub fn request(
        &self,
        state: &StepsState,
        agent: &AgentId,
        key: &StepKey,
    ) -> Option<AgentRequest> {
        let asks = self.agent(key)?;
        let RenderedStep::Agent(question) = self.render_entered(state, agent, key)? else {
            return None;
        };
        Some(AgentRequest {
            run: None,
            key: key.clone(),
            prompt: question.prompt,
            input: question.input,
            schema: Arc::clone(&asks.schema),
            attempt: state.attempts.get(key).copied().unwrap_or(1),
            max_attempts: self.last_attempt(state, key),
            assignee: asks.assignee.clone(),
            session: asks.session.clone(),
            settings: asks.settings.clone(),
            validation_errors: state.complaints.get(key).cloned().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests;
