//! The answer to a call: done, or what is needed to go on, or why it failed.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::crayfish::document::Session;
use crate::crayfish::error_code::ErrorCode;
use crate::crayfish::key::{Key, RequestId};
use crate::crayfish::name::StepId;
use crate::crayfish::problem::Problem;
use crate::ids::RunId;

#[cfg(test)]
mod tests;

/// What a caller gets back. The results and attempts so far are always there.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The run whose record was kept.
    pub run: Option<RunId>,
    /// How the call ended.
    pub outcome: Outcome,
    /// What steps left, by key, and by id for the latest.
    pub results: Map<String, Value>,
    /// Which attempt was asked for last, by key.
    pub attempts: BTreeMap<String, u32>,
    /// Outputs that were not used: nothing was used up by them.
    pub ignored: Vec<Problem>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Every step is done.
    Done,
    /// Only the caller can go on, with at least one output.
    NeedsAgent(Vec<AgentRequest>),
    /// It cannot go on.
    Failed(Failure),
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened: lower case, no full stop.
    pub message: String,
    /// The step it happened in.
    pub step: Option<StepId>,
    /// What is wrong in detail.
    pub errors: Vec<Problem>,
}

/// What one agent step asks of the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    /// The run, when its record is kept.
    pub run: Option<RunId>,
    /// Which execution of which step.
    pub key: Key,
    /// What to do.
    pub prompt: String,
    /// What to do it with.
    pub input: Option<Value>,
    /// What the output must be; it needs no other document.
    pub schema: Value,
    /// From 1.
    pub attempt: u32,
    /// The last attempt there is.
    pub max_attempts: u32,
    /// Who should do it.
    pub assignee: Option<String>,
    /// In which conversation.
    pub session: Option<Session>,
    /// What was wrong with the attempt before.
    pub validation_errors: Vec<Problem>,
}

impl Reply {
    /// A failure before anything is known of a run.
    pub fn failed(code: ErrorCode, message: impl Into<String>, errors: Vec<Problem>) -> Self {
        let failure = Failure { code, message: message.into(), step: None, errors };
        Self {
            run: None,
            outcome: Outcome::Failed(failure),
            results: Map::new(),
            attempts: BTreeMap::new(),
            ignored: Vec::new(),
        }
    }

    /// As it is sent.
    pub fn into_json(self) -> Value {
        let mut reply = match self.outcome {
            Outcome::Done => object([("ok", true.into()), ("status", "done".into())]),
            Outcome::NeedsAgent(requests) => {
                let requests = requests.into_iter().map(AgentRequest::into_json).collect();
                object([
                    ("ok", true.into()),
                    ("status", "needs_agent".into()),
                    ("requests", Value::Array(requests)),
                ])
            }
            Outcome::Failed(failure) => failure.into_json(),
        };
        put(&mut reply, "runId", self.run.map(|run| run.as_str().into()));
        put(&mut reply, "results", Some(Value::Object(self.results)));
        put(&mut reply, "attempts", Some(json!(self.attempts)));
        let ignored: Vec<Value> = self.ignored.iter().map(Problem::to_json).collect();
        put(&mut reply, "ignored", (!ignored.is_empty()).then_some(Value::Array(ignored)));
        Value::Object(reply)
    }
}

impl Failure {
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
    /// Under which id the output may be sent.
    pub fn id(&self) -> RequestId {
        RequestId { run: self.run.clone(), key: self.key.clone(), attempt: self.attempt }
    }

    /// As it is sent.
    pub fn into_json(self) -> Value {
        let mut request = object([
            ("requestId", self.id().to_string().into()),
            ("stepId", self.key.step.as_str().into()),
            ("key", self.key.to_string().into()),
            ("prompt", self.prompt.into()),
            ("schema", self.schema),
            ("attempt", self.attempt.into()),
            ("maxAttempts", self.max_attempts.into()),
        ]);
        put(&mut request, "input", self.input);
        put(&mut request, "assigneeAgentId", self.assignee.map(Value::from));
        put(&mut request, "session", self.session.map(session));
        // One line each, as a model reads them best.
        let errors: Vec<String> = self.validation_errors.iter().map(Problem::to_string).collect();
        let context = (!errors.is_empty()).then(|| json!({ "validationErrors": errors }));
        put(&mut request, "retryContext", context);
        Value::Object(request)
    }
}

fn session(session: Session) -> Value {
    let mut sent = Map::new();
    put(&mut sent, "mode", session.mode.map(|mode| mode.name().into()));
    put(&mut sent, "label", session.label.map(Value::from));
    put(&mut sent, "reset", session.reset.map(Value::from));
    Value::Object(sent)
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Adds a field that is there; what is not there is absent, never null.
fn put(fields: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        fields.insert(key.to_owned(), value);
    }
}
