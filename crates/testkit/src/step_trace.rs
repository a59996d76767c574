//! The programs and questions of a run of steps, in a form that interpreters can compare.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::agent::AgentStatus;
use raymond_core::crayfish::StepsDefinition;
use raymond_core::crayfish::document::AgentSettings;
use raymond_core::crayfish::envelope::AgentRequest;
use raymond_core::crayfish::render::{CallFile, CallIo, ExecCall, StepCommand};
use raymond_core::crayfish::state::{Branch, Position, StepsState};
use raymond_core::failure::AgentFailure;
use raymond_core::run::turn_spec::PromptSpec;
use raymond_core::run::{Ending, Phase, Run};
use serde_json::{Value as Json, json};

use crate::violation::Violation;

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramResult {
    Succeeded(Json),
    /// It failed, and another attempt may help.
    Failed(Json),
    /// Its inputs are invalid, so it was not started.
    NotRun(Json),
}

/// The actions and results of a run of steps, from any interpreter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepTrace {
    /// The programs that ran: key, attempt and call.
    pub ran: BTreeSet<String>,
    /// The questions: key, attempt, prompt, input, model and tools.
    pub asked: BTreeSet<String>,
    /// The results of steps, by key.
    pub results: BTreeMap<String, Json>,
    /// The last requested attempt, by key.
    pub attempts: BTreeMap<String, u32>,
    /// The output of a document that is done, if it has one.
    pub output: Option<Json>,
    /// The failed steps with their error codes, in list order.
    pub failures: Vec<(String, String)>,
    /// Whether parallel iterations failed inside an iteration that collects failures. Then the
    /// rules do not define how far the other iterations get, so traces are not compared.
    pub is_indeterminate: bool,
}

/// The model and the tools of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QuestionSettings {
    pub(crate) model: Option<String>,
    pub(crate) allow: Vec<String>,
}

impl QuestionSettings {
    pub(crate) fn of_prompt(prompt: &PromptSpec) -> Self {
        Self { model: prompt.model.clone(), allow: prompt.permissions.allow.clone() }
    }

    pub(crate) fn of_request(request: &AgentRequest) -> Self {
        let AgentSettings { model, allow, budget: _ } = request.settings.clone();
        Self { model, allow }
    }

    pub(crate) fn to_json(&self) -> Json {
        json!({ "model": self.model, "allow": self.allow })
    }
}

/// Returns the results of a run, without programs and questions.
pub(crate) fn trace_of(run: &Run, steps: &StepsDefinition) -> Result<StepTrace, Violation> {
    let (mut trace, none) = (StepTrace::default(), StepsState::default());
    let flow = run.program.steps().unwrap_or(&none);
    for (key, stored) in &flow.results {
        let mut json = stored.json().cloned().unwrap_or_default();
        if let Some(result) = json.as_object_mut().filter(|result| result["ok"] == false) {
            // The wording of a failure is not specified.
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
        let Some(AgentStatus::Failed { failure: AgentFailure::Step { code, .. }, .. }) = status
        else {
            return Err(Violation(format!("{agent} failed otherwise: {status:?}")));
        };
        let Some(Branch { at: Position::Failed(key), born, .. }) = flow.branches.get(agent) else {
            return Err(Violation(format!("{agent} failed, and its branch did not")));
        };
        // Agents fail in any order. Sorted by their iterations, failures have the order of the
        // list, which is the order of the reference.
        let place: Vec<u32> = born.iter().map(|born| born.number).collect();
        let step = key.step.to_string();
        failures.insert((place, step.clone()), (step, code.to_string()));
    }
    trace.failures = failures.into_values().collect();
    // Checked here, because a trace has no phase: a run that fails without a failed step would
    // pass.
    let completed = run.phase == Phase::Ended(Ending::Completed);
    if completed {
        let output = steps.output(flow).transpose();
        trace.output = output.map_err(|why| Violation(format!("the output is lost: {why}")))?;
    }
    if completed != trace.failures.is_empty() {
        return Err(Violation(format!("{:?} with {:?}", run.phase, trace.failures)));
    }
    Ok(trace)
}

/// Writes a call in the format of the reference.
pub(crate) fn call_of(call: &ExecCall) -> Json {
    let paths = |files: &[CallFile]| files.iter().map(|file| file.path.clone()).collect();
    let (inputs, outputs): (Vec<String>, Vec<String>) = match &call.io {
        CallIo::File { inputs, outputs } => (paths(inputs), paths(outputs)),
        CallIo::None | CallIo::Stream { .. } => (Vec::new(), Vec::new()),
    };
    let mut trace = json!({ "env": call.env, "in": inputs, "out": outputs });
    match &call.command {
        StepCommand::Shell(text) => trace["shell"] = json!(text),
        StepCommand::Cmd { cmd, args } => {
            trace["cmd"] = json!(cmd);
            trace["args"] = json!(args);
        }
    }
    if let CallIo::Stream { input: Some(stdin), .. } = &call.io {
        trace["stdin"] = stdin.clone();
    }
    trace
}

/// Returns the question in a message, in the format of the reference.
pub(crate) fn question_of(
    message: &str,
    attempt: u32,
    settings: &QuestionSettings,
) -> Result<Json, Violation> {
    // The sentence before the envelope may change; only the envelope is specified.
    let envelope = message.find('{').map(|at| serde_json::from_str::<Json>(&message[at..]));
    let Some(Ok(envelope)) = envelope else {
        return Err(Violation(format!("{message:?} has no envelope")));
    };
    // Every wrong answer of the simulation has this one problem.
    let retried = envelope["retryContext"]["validationErrors"] == json!(["/n: as planned"]);
    if envelope["task"]["attempt"] != attempt || retried != (attempt > 1) {
        return Err(Violation(format!("attempt {attempt} gets the envelope {envelope}")));
    }
    // A list, because an absent input and an input of null are different questions.
    let input = envelope.get("input").map_or_else(|| json!([]), |input| json!([input]));
    Ok(json!([envelope["instructions"], input, settings.to_json()]))
}
