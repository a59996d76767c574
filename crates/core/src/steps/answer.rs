//! The reply of a run to its caller, at the end of a call.
//!
//! A call ends when the run completes, fails, is stopped, or needs outputs of the caller. The size
//! of a reply is bounded: results by [`MOST_KEPT`](crate::crayfish::state::MOST_KEPT), requests
//! here.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::agent::AgentStatus;
use crate::failure::AgentFailure;
use crate::ids::{RunId, TurnId};
use crate::run::program::{Program, Steps};
use crate::run::{Ending, Phase, Run};

use crate::crayfish::definition::StepsDefinition;
use crate::crayfish::envelope::{AgentRequest, CallFailure, CallOutcome, CallReply};
use crate::crayfish::error_code::ErrorCode;
use crate::crayfish::key::StepKey;
use crate::crayfish::problem::Problem;
use crate::crayfish::state::Branch;

#[cfg(test)]
mod tests;

/// The message of a call that its caller cancelled.
pub const GIVEN_UP: &str = "the call was given up";

/// Returns the reply of a run to its caller.
pub fn answer(run: Run, steps: &StepsDefinition, id: Option<&RunId>) -> CallReply {
    let outcome = match run.phase {
        Phase::Ended(Ending::Completed) => CallOutcome::Done { output: output(&run, steps) },
        Phase::Ended(Ending::NeedsCaller) => CallOutcome::NeedsAgent(requests(&run, steps, id)),
        Phase::Ended(Ending::Failed) => CallOutcome::Failed(failure(&run)),
        Phase::Ended(Ending::Cancelled) => {
            given_up("the run was cancelled for good: name another `runId`")
        }
        Phase::Ended(_) | Phase::Unborn | Phase::Open | Phase::Stopping(_) => given_up(GIVEN_UP),
    };
    let mut attempts = attempts(&run);
    if id.is_none() {
        use_up(&mut attempts, &run, steps);
    }
    CallReply { run: id.cloned(), outcome, results: results(run), attempts, ignored: Vec::new() }
}

/// Returns the output of the document, if it has one.
fn output(run: &Run, steps: &StepsDefinition) -> Option<Json> {
    // Filled in before the run completed: a document whose output is too large has failed.
    steps.output(run.program.steps()?)?.ok()
}

// A step with a collected failure is not run again from an echo. Without a journal only the echo
// can show that its attempts are used up, so the reply contains an attempt beyond the last one.
fn use_up(attempts: &mut BTreeMap<String, u32>, run: &Run, steps: &StepsDefinition) {
    let Some(state) = run.program.steps() else { return };
    let failed: Vec<&StepKey> = state.branches.values().filter_map(Branch::failed_at).collect();
    let collected =
        state.results.iter().filter(|(key, stored)| !stored.ok && !failed.contains(key));
    for (key, stored) in collected {
        let error = stored.json().and_then(|json| json.get("error")).and_then(Json::as_str);
        if error == Some(ErrorCode::AgentOutputSchemaFailed.as_str()) {
            attempts.insert(key.to_string(), steps.last_attempt(state, key).saturating_add(1));
        }
    }
}

/// Returns the results by key, and the latest of each step by id.
pub fn results(run: Run) -> Map<String, Json> {
    let Program::Steps(Steps { state, .. }) = run.program else { return Map::new() };
    let mut results = Map::new();
    for (key, stored) in state.results {
        // The owner has parsed every result, or has loaded it when it opened the run.
        let json = stored.read.0.map(Arc::unwrap_or_clone).unwrap_or_default();
        if !key.iterations.is_empty() && state.latest.get(&key.step) == Some(&key) {
            results.insert(key.step.to_string(), json.clone());
        }
        results.insert(key.to_string(), json);
    }
    results
}

/// Returns the attempt of each step that was requested last.
pub fn attempts(run: &Run) -> BTreeMap<String, u32> {
    let attempts = run.program.steps().into_iter().flat_map(|state| &state.attempts);
    attempts.map(|(key, attempt)| (key.to_string(), *attempt)).collect()
}

fn given_up(message: &str) -> CallOutcome {
    let message = message.to_owned();
    CallOutcome::Failed(CallFailure {
        code: ErrorCode::Cancelled,
        message,
        step: None,
        errors: Vec::new(),
    })
}

/// The most bytes of requests in one reply, about 32 MiB; the others follow in later replies.
const MOST_ASKED: usize = 32 * 1024 * 1024;

/// Returns the requests to the caller, in the order of keys.
fn requests(run: &Run, steps: &StepsDefinition, id: Option<&RunId>) -> Vec<AgentRequest> {
    let Some(state) = run.program.steps() else { return Vec::new() };
    let keyed =
        run.scheduler.asks.keys().filter_map(|ask| {
            Some((run.agents.get(&ask.agent)?.visit.location.step()?.clone(), ask))
        });
    let keyed: BTreeMap<StepKey, &TurnId> = keyed.collect();
    let asked = keyed.into_iter().filter_map(|(key, ask)| {
        let request = steps.request(state, &ask.agent, &key)?;
        Some(AgentRequest { run: id.cloned(), ..request })
    });
    fitting(asked, MOST_ASKED)
}

/// Returns the first requests with at most `most` bytes together.
fn fitting(asked: impl Iterator<Item = AgentRequest>, most: usize) -> Vec<AgentRequest> {
    let mut size = 0;
    asked
        .take_while(|request| {
            // The first one is always sent, because the run could not continue without it.
            let is_first = size == 0;
            let input = request.input.as_ref().map_or(0, weight);
            size += request.prompt.len() + input + weight(&request.schema);
            is_first || size <= most
        })
        .collect()
}

/// Estimates the bytes of a value as text, because writing it out would double the work.
fn weight(value: &Json) -> usize {
    match value {
        // Eight bytes are a rough mean: the limit need not be exact.
        Json::Null | Json::Bool(_) | Json::Number(_) => 8,
        Json::String(text) => text.len() + 2,
        Json::Array(items) => 2 + items.iter().map(weight).sum::<usize>(),
        Json::Object(fields) => {
            2 + fields.iter().map(|(name, value)| name.len() + 4 + weight(value)).sum::<usize>()
        }
    }
}

/// Returns the first failure, in the order of keys.
fn failure(run: &Run) -> CallFailure {
    let state = run.program.steps();
    let failed = run.failed.iter().filter_map(|agent| {
        let AgentStatus::Failed { failure, .. } = &run.agents.get(agent)?.status else {
            return None;
        };
        Some((state?.branches.get(agent)?.failed_at()?, failure))
    });
    // By key and not by time, so that a repeated call reports the same failure.
    let Some((key, failure)) = failed.min_by(|one, other| one.0.cmp(other.0)) else {
        let message = "the run failed without a failed step in its record".to_owned();
        return CallFailure { code: ErrorCode::Internal, message, step: None, errors: Vec::new() };
    };
    let stored = state.and_then(|state| state.results.get(key)?.json());
    let errors = stored.and_then(|stored| stored.get("errors")).map(problems).unwrap_or_default();
    let (code, message) = if let AgentFailure::Step { code, message, .. } = failure {
        (*code, message.clone())
    } else {
        // In a run of a caller only programs have turns, so any other failure is one of a program.
        (ErrorCode::ExecFailed, failure.to_string())
    };
    // The id of the step does not name the iteration, so the message does.
    let message = if key.iterations.is_empty() { message } else { format!("{key}: {message}") };
    CallFailure { code, message, step: Some(key.step.clone()), errors }
}

fn problems(errors: &Json) -> Vec<Problem> {
    serde_json::from_value(errors.clone()).unwrap_or_default()
}
