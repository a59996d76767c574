//! The programs and questions of a run of steps, in a form that interpreters can compare.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::agent::AgentStatus;
use raymond_core::crayfish::render::{Call, Program as Renders};
use raymond_core::crayfish::state::{Branch, Position, StepsState};
use raymond_core::failure::Failure;
use raymond_core::run::{Ending, Phase, Run};
use serde_json::{Value as Json, json};

use crate::violation::Violation;

/// How a program ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramResult {
    /// Well.
    Succeeded(Json),
    /// Badly, and another attempt may help.
    Failed(Json),
    /// Its inputs are not what they must be: nothing was run.
    NotRun(Json),
}

/// What was done, by whichever interpreter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepTrace {
    /// Programs that ran: key, attempt and call.
    pub ran: BTreeSet<String>,
    /// Questions that were asked: key, attempt, prompt and input.
    pub asked: BTreeSet<String>,
    /// What steps left, by key.
    pub results: BTreeMap<String, Json>,
    /// The attempt that was asked for last, by key.
    pub attempts: BTreeMap<String, u32>,
    /// What failed, in list order: the step and the code. Nothing when all is done.
    pub failures: Vec<(String, String)>,
    /// Whether iterations at the same time failed inside an iteration whose failure is collected: how
    /// far the others come, and what is seen of them afterwards, is not said.
    pub is_indeterminate: bool,
}

/// What a run came to, beside what was run and asked.
pub(crate) fn trace_of(run: &Run) -> Result<StepTrace, Violation> {
    let (mut trace, none) = (StepTrace::default(), StepsState::default());
    let flow = run.flow.as_deref().unwrap_or(&none);
    for (key, stored) in &flow.results {
        let mut json = stored.json().cloned().unwrap_or_default();
        if let Some(result) = json.as_object_mut().filter(|result| result["ok"] == false) {
            // The words of a failure are free.
            result.remove("message");
            result.remove("errors");
        }
        trace.results.insert(key.to_string(), json);
    }
    let attempts = flow.attempts.iter().map(|(key, attempt)| (key.to_string(), *attempt));
    trace.attempts = attempts.collect();
    let mut failures = BTreeMap::new();
    for agent in &run.failed {
        let status = run.agents.get(agent).map(|agent| &agent.status);
        let Some(AgentStatus::Failed { failure: Failure::Step { code, .. }, .. }) = status else {
            return Err(Violation(format!("{agent} failed otherwise: {status:?}")));
        };
        let Some(Branch { at: Position::Failed(key), born, .. }) = flow.branches.get(agent) else {
            return Err(Violation(format!("{agent} failed, and its branch did not")));
        };
        let place: Vec<u32> = born.iter().map(|born| born.number).collect();
        let step = key.step.to_string();
        failures.insert((place, step.clone()), (step, code.clone()));
    }
    trace.failures = failures.into_values().collect();
    let completed = run.phase == Phase::Ended(Ending::Completed);
    if completed != trace.failures.is_empty() {
        return Err(Violation(format!("{:?} with {:?}", run.phase, trace.failures)));
    }
    Ok(trace)
}

/// A program with everything that it is handed, in the words of the reference.
pub(crate) fn call_of(call: &Call) -> Json {
    let mut trace = json!({ "env": call.env, "in": call.inputs, "out": call.outputs });
    match &call.program {
        Renders::Shell(text) => trace["shell"] = json!(text),
        Renders::Cmd { cmd, args } => {
            trace["cmd"] = json!(cmd);
            trace["args"] = json!(args);
        }
    }
    if let Some(stdin) = &call.input {
        trace["stdin"] = stdin.clone();
    }
    trace
}

/// The question in a message.
pub(crate) fn question_of(message: &str, attempt: u32) -> Result<Json, Violation> {
    let envelope = message.find('{').map(|at| serde_json::from_str::<Json>(&message[at..]));
    let Some(Ok(envelope)) = envelope else {
        return Err(Violation(format!("{message:?} has no envelope")));
    };
    let retried = envelope["retryContext"]["validationErrors"] == json!(["/n: as planned"]);
    if envelope["task"]["attempt"] != attempt || retried != (attempt > 1) {
        return Err(Violation(format!("attempt {attempt} is told {envelope}")));
    }
    let input = envelope.get("input").map_or_else(|| json!([]), |input| json!([input]));
    Ok(json!([envelope["instructions"], input]))
}
