//! The reply to a call: done, requests for the caller, or a failure.
//!
//! It always contains the results and attempts so far, because a caller without a run has no other
//! record of them. The JSON here must match the published schema ([`super::super::schema::REPLY`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::crayfish::document::{AgentSettings, SessionChoice};
use crate::crayfish::error_code::ErrorCode;
use crate::crayfish::key::{RequestId, StepKey};
use crate::crayfish::name::StepId;
use crate::crayfish::problem::Problem;
use crate::ids::RunId;

#[cfg(test)]
mod tests;

/// The reply to a call. It always contains the results and attempts so far.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReply {
    /// The run, if it has a journal.
    pub run: Option<RunId>,
    pub outcome: CallOutcome,
    /// Results by key, and the latest of each step by id.
    pub results: Map<String, Value>,
    /// The attempt that was requested last, by key.
    pub attempts: BTreeMap<String, u32>,
    /// Outputs that were not used; they consumed no attempt.
    pub ignored: Vec<Problem>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    Done {
        /// The output of the document, if it has one.
        output: Option<Value>,
    },
    /// The run needs at least one output of the caller.
    NeedsAgent(Vec<AgentRequest>),
    Failed(CallFailure),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    pub code: ErrorCode,
    /// The cause: lower case, no full stop.
    pub message: String,
    pub step: Option<StepId>,
    /// Details.
    pub errors: Vec<Problem>,
}

/// The request of one agent step to the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    /// The run, if it has a journal.
    pub run: Option<RunId>,
    pub key: StepKey,
    pub prompt: String,
    /// Data for the task.
    pub input: Option<Value>,
    /// The schema of the output, with every `$ref` resolved.
    pub schema: Arc<Value>,
    /// The attempt, from 1.
    pub attempt: u32,
    pub max_attempts: u32,
    /// The agent that should answer; advice to the caller.
    pub assignee: Option<String>,
    pub session: Option<SessionChoice>,
    /// The model, tools and budget that the step asks for; advice to the caller.
    pub settings: AgentSettings,
    /// The errors of the previous attempt.
    pub validation_errors: Vec<Problem>,
}

impl CallReply {
    /// Returns a failure from before any run was opened.
    pub fn failed(code: ErrorCode, message: impl Into<String>, errors: Vec<Problem>) -> Self {
        // Nothing ran, so there are no results that the caller would have to keep.
        let failure = CallFailure { code, message: message.into(), step: None, errors };
        Self {
            run: None,
            outcome: CallOutcome::Failed(failure),
            results: Map::new(),
            attempts: BTreeMap::new(),
            ignored: Vec::new(),
        }
    }

    /// Returns the reply as the caller receives it.
    pub fn into_json(self) -> Value {
        let mut reply = match self.outcome {
            CallOutcome::Done { output } => {
                let mut done = object([("ok", true.into()), ("status", "done".into())]);
                put(&mut done, "output", output);
                done
            }
            CallOutcome::NeedsAgent(requests) => {
                let requests = requests.into_iter().map(AgentRequest::into_json).collect();
                object([
                    ("ok", true.into()),
                    ("status", "needs_agent".into()),
                    ("requests", Value::Array(requests)),
                ])
            }
            CallOutcome::Failed(failure) => failure.into_json(),
        };
        put(&mut reply, "runId", self.run.map(|run| run.as_str().into()));
        put(&mut reply, "results", Some(Value::Object(self.results)));
        put(&mut reply, "attempts", Some(json!(self.attempts)));
        let ignored: Vec<Value> = self.ignored.iter().map(Problem::to_json).collect();
        put(&mut reply, "ignored", (!ignored.is_empty()).then_some(Value::Array(ignored)));
        Value::Object(reply)
    }
}

impl CallFailure {
    fn into_json(self) -> Map<String, Value> {
        let mut failure = object([
            ("ok", false.into()),
            ("error", self.code.as_str().into()),
            ("message", self.message.into()),
        ]);
        put(&mut failure, "stepId", self.step.map(|step| step.as_str().into()));
        let errors: Vec<Value> = self.errors.iter().map(Problem::to_json).collect();
        put(&mut failure, "errors", (!errors.is_empty()).then_some(Value::Array(errors)));
        failure
    }
}

impl AgentRequest {
    /// Returns the id under which the caller may send the output.
    pub fn id(&self) -> RequestId {
        RequestId { run: self.run.clone(), key: self.key.clone(), attempt: self.attempt }
    }

    /// Returns the request as the caller receives it.
    pub fn into_json(self) -> Value {
        let mut request = object([
            ("requestId", self.id().to_string().into()),
            ("stepId", self.key.step.as_str().into()),
            ("key", self.key.to_string().into()),
            ("prompt", self.prompt.into()),
            ("schema", Arc::unwrap_or_clone(self.schema)),
            ("attempt", self.attempt.into()),
            ("maxAttempts", self.max_attempts.into()),
        ]);
        put(&mut request, "input", self.input);
        put(&mut request, "assigneeAgentId", self.assignee.map(Value::from));
        put(&mut request, "session", self.session.map(session));
        let AgentSettings { model, allow, budget } = self.settings;
        put(&mut request, "model", model.map(Value::from));
        put(&mut request, "allow", (!allow.is_empty()).then(|| allow.into()));
        put(&mut request, "budget", budget.map(|budget| budget.dollars().into()));
        // One line of text for each error, not an object: a model reads lines best.
        let errors: Vec<String> = self.validation_errors.iter().map(Problem::to_string).collect();
        let context = (!errors.is_empty()).then(|| json!({ "validationErrors": errors }));
        put(&mut request, "retryContext", context);
        Value::Object(request)
    }
}

fn session(session: SessionChoice) -> Value {
    let mut sent = Map::new();
    put(&mut sent, "mode", session.mode.map(|mode| mode.name().into()));
    put(&mut sent, "label", session.label.map(Value::from));
    put(&mut sent, "reset", session.reset.map(Value::from));
    Value::Object(sent)
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

// An absent field is left out and never null: the published schemas allow no null.
fn put(fields: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        fields.insert(key.to_owned(), value);
    }
}
