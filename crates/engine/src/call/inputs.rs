//! The inputs of a call: outputs of agent steps, checked by their schemas, and earlier results.
//!
//! An output may come under a request id (`run:key:attempt`), a key or the id of a step. This
//! module decides which attempt it is for, refuses outputs for a future attempt or a missing run,
//! and reports outputs that were not used. `raymond_core::crayfish` decides what a run does with
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_core::crayfish::call::{Output, written};
use raymond_core::crayfish::document::StepIndex;
use raymond_core::crayfish::envelope::request::done;
use raymond_core::crayfish::key::RequestId;
use raymond_core::crayfish::problem::limited;
use raymond_core::crayfish::state::{StepsState, accepted};
use raymond_core::crayfish::verdict::Verdict;
use raymond_core::crayfish::{
    Call, CallReply, CallRequest, Document, ErrorCode, Problem, ProblemCode, StepKey, StepKind,
};
use raymond_core::ids::RunId;
use raymond_core::run::Run;
use raymond_core::text::push_pointer_token;
use raymond_store::{Blobs, blobs};
use serde_json::Value as Json;

use super::{invalid, refused};
use crate::observe::store;
use crate::schemas::Schemas;

/// The record of earlier calls, besides the results that the caller sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunRecord {
    /// A call without a `runId`: only the caller knows what happened.
    None,
    /// A run that starts with this call.
    New,
    /// A run that an earlier call started.
    Existing,
}

/// The checked inputs of a call.
pub(super) struct CallInputs {
    /// By the name that the run uses: the name in the request, the output, and whether it is valid.
    outputs: BTreeMap<String, (String, Json, Verdict)>,
    attempts: BTreeMap<StepKey, u32>,
    results: BTreeMap<StepKey, Json>,
    /// Results of steps that the document does not have.
    unknown: Vec<Problem>,
}

impl CallInputs {
    /// Checks the outputs of a request. Outputs that no step can have asked for are left out here;
    /// the caller refuses them.
    pub(super) fn check(request: CallRequest, document: &Document, schemas: &Schemas) -> Self {
        let CallRequest { agent_outputs, mut unread, attempts, results, .. } = request;
        let weighed = agent_outputs.into_iter().filter_map(|(name, json)| {
            let (known_as, step) = named(document, &name)?;
            // An answer that is not JSON has its problem already, and no schema to check.
            let unread = unread.remove(&name).map(|wrong| vec![wrong]);
            let errors =
                unread.unwrap_or_else(|| schemas.errors(agent_schema(document, step), &json));
            let verdict = if errors.is_empty() { Verdict::Valid } else { Verdict::Invalid(errors) };
            Some((known_as, (name, json, verdict)))
        });
        let outputs = weighed.collect();
        let attempts =
            attempts.into_iter().filter_map(|(name, n)| Some((done(document, &name)?.0, n)));
        let mut inputs = Self {
            outputs,
            attempts: attempts.collect(),
            results: BTreeMap::new(),
            unknown: Vec::new(),
        };
        for (name, result) in results {
            match done(document, &name) {
                // For a step in a loop, replies also contain the latest result under the id of the
                // step. The result under the full key is the one that counts.
                Some((key, _)) if document.find_key(&key).is_none() => {}
                Some((key, step)) => {
                    let kind = &document.step(step).kind;
                    if is_good(&result) || inputs.is_final(&key, kind, &result) {
                        inputs.results.insert(key, result);
                    }
                }
                // A loop that another loop collects has a result too. It is not an input.
                None if has_step(document, &name) => {}
                None => {
                    let message = "the document has no such step".to_owned();
                    inputs.unknown.push(problem_at(
                        "/results",
                        &name,
                        ProblemCode::UnknownStep,
                        message,
                    ));
                }
            }
        }
        inputs
    }

    /// Returns whether an agent step has used up its attempts in an earlier call: it must not be
    /// asked again.
    fn is_final(&self, key: &StepKey, kind: &StepKind, result: &Json) -> bool {
        let StepKind::Agent(agent) = kind else { return false };
        let says = |key: &str| result.get(key).and_then(Json::as_str);
        self.attempts.get(key).is_some_and(|attempt| *attempt > agent.retries.get())
            && says("error") == Some(ErrorCode::AgentOutputSchemaFailed.as_str())
            && says("message").is_some()
    }

    /// Returns whether this request contains an invalid output for an attempt, so that the next
    /// attempt follows.
    fn is_invalid(&self, key: &StepKey, attempt: u32) -> bool {
        let output = self.outputs.get(&format!("{key}:{attempt}"));
        output.is_some_and(|(.., verdict)| matches!(verdict, Verdict::Invalid(_)))
    }

    /// Stores the inputs and returns them as a run takes them. An output for a later attempt than
    /// the current one is refused, unless the request contains invalid outputs for all attempts
    /// before it.
    pub(super) fn call(
        &mut self,
        run: &Run,
        record: RunRecord,
        blobs: &Blobs,
    ) -> Result<Call, Box<CallReply>> {
        let none = BTreeMap::new();
        let asked = match record {
            RunRecord::None => &self.attempts,
            RunRecord::New | RunRecord::Existing => {
                run.program.steps().map_or(&none, |flow| &flow.attempts)
            }
        };
        let early = self.requested().filter_map(|(name, id)| {
            let attempt = written(asked, &id.key).map_or(1, |(_, attempt)| attempt);
            let mut before = attempt..id.attempt;
            (!before.all(|attempt| self.is_invalid(&id.key, attempt))).then(|| {
                let message = format!("{} is at attempt {attempt}", id.key);
                at_output(name, ProblemCode::UnaskedOutput, message)
            })
        });
        let unasked_attempts = match record {
            RunRecord::None => None,
            RunRecord::New => Some(self.unasked_attempts(None)),
            RunRecord::Existing => Some(self.unasked_attempts(Some(run))),
        };
        let early = limited(early.chain(unasked_attempts.into_iter().flatten()));
        if !early.is_empty() {
            return Err(invalid(ErrorCode::UnaskedOutput, "the request", early));
        }
        self.stored(record, blobs)
            .map_err(|error| refused(ErrorCode::StoreFailed, error.to_string(), Vec::new()))
    }

    /// Returns a problem for each output under a key or step id whose claimed attempt the record
    /// has not asked for. If such claims were used, a repeated call would use up one attempt after
    /// the other.
    fn unasked_attempts<'a>(
        &'a self,
        record: Option<&'a Run>,
    ) -> impl Iterator<Item = Problem> + 'a {
        let names = self.outputs.values().filter(|(name, ..)| name.parse::<RequestId>().is_err());
        names.filter_map(move |(name, ..)| {
            let name: StepKey = name.parse().ok()?;
            let flow = record.and_then(|run| run.program.steps());
            let is_done = match flow {
                Some(flow) => flow.results.contains_key(&name),
                None => self.results.get(&name).is_some_and(is_good),
            };
            let waiting = record.and_then(|run| waiting_attempt(run, &name));
            let (key, attempt) = waiting.unwrap_or_else(|| (name.clone(), 1));
            let (claim, claimed) = written(&self.attempts, &key).filter(|_| !is_done)?;
            let message = format!("{key} is at attempt {attempt}");
            let problem =
                || problem_at("/attempts", &claim.to_string(), ProblemCode::UnaskedOutput, message);
            (attempt < claimed).then(problem)
        })
    }

    /// Returns a problem for each output of a run that does not exist. The caller means another
    /// run, or one that was deleted; starting it again would repeat work that is already done.
    pub(super) fn answers_without_run(&self, run: &RunId) -> Vec<Problem> {
        let message = format!("there is no run {run} yet: no step has asked for it");
        let of_it = self.requested().filter(|(_, id)| id.run.as_ref() == Some(run));
        let of_it =
            of_it.map(|(name, _)| at_output(name, ProblemCode::UnaskedOutput, message.clone()));
        limited(of_it.chain(self.unasked_attempts(None)))
    }

    fn stored(&mut self, record: RunRecord, blobs: &Blobs) -> Result<Call, blobs::Error> {
        let (mut outputs, mut results) = (BTreeMap::new(), BTreeMap::new());
        for (known_as, (_, json, verdict)) in &mut self.outputs {
            // Taken out instead of cloned: outputs may be large, and only their names are needed
            // later.
            let stored = store(blobs, accepted(json.take()), true)?;
            outputs.insert(known_as.clone(), Output { stored, verdict: verdict.clone() });
        }
        // An existing record has its own results. A new record starts with the caller's good
        // results, but failed steps get new attempts.
        let seeds = std::mem::take(&mut self.results);
        let seeds = seeds.into_iter().filter(|(_, result)| match record {
            RunRecord::None => true,
            RunRecord::New => is_good(result),
            RunRecord::Existing => false,
        });
        for (key, result) in seeds {
            let ok = is_good(&result);
            results.insert(key, store(blobs, result, ok)?);
        }
        // Without a record the run trusts the attempts that the caller sends.
        let alone = record == RunRecord::None;
        Ok(Call { results, attempts: self.attempts.clone(), alone, outputs })
    }

    /// Returns a problem for each output that was not used: its attempt has ended, another output
    /// was used for it, or no step has asked for it. Outputs of finished steps are not reported,
    /// because callers may repeat them.
    pub(super) fn ignored(&self, run: &Run, id: Option<&RunId>) -> Vec<Problem> {
        let Some(flow) = run.program.steps() else { return Vec::new() };
        let weigh = |(known_as, (name, ..)): (&String, &(String, Json, Verdict))| {
            let is_unused = flow.offers.contains_key(known_as);
            if !is_unused && !flow.stale.contains(known_as) {
                return None;
            }
            let (code, message) = match name.parse::<RequestId>() {
                Ok(request) => why_unused_request(flow, &request),
                Err(_) => self.why_unused_name(run, flow, name, id),
            }?;
            Some(at_output(name, code, message))
        };
        limited(self.outputs.iter().filter_map(weigh).chain(self.unknown.iter().cloned()))
    }

    /// Returns why an output under a key or step id was not used.
    fn why_unused_name(
        &self,
        run: &Run,
        flow: &StepsState,
        name: &str,
        id: Option<&RunId>,
    ) -> Option<(ProblemCode, String)> {
        let name: StepKey = name.parse().ok()?;
        let taken = self.requested().find(|(_, request)| {
            request.key == name && !flow.offers.contains_key(&known_as(request))
        });
        if let Some((instead, _)) = taken {
            return Some((ProblemCode::StaleOutput, format!("`{instead}` was used instead")));
        }
        if flow.results.contains_key(&name) {
            return None;
        }
        let Some((key, attempt)) = waiting_attempt(run, &name) else {
            // The id of a step in a loop may mean any iteration, also one that is finished.
            let is_done = name.iterations.is_empty() && flow.latest.contains_key(&name.step);
            return (!is_done).then(unasked);
        };
        let claimed = written(&self.attempts, &key).map_or(1, |(_, claimed)| claimed);
        let request = RequestId { run: id.cloned(), key, attempt };
        let message = format!(
            "counted as attempt {claimed}, but attempt {attempt} is waiting: \
             send it as `{request}`, or echo `attempts`"
        );
        Some(if claimed < attempt { (ProblemCode::StaleOutput, message) } else { unasked() })
    }

    /// Returns the outputs that came under a request id.
    fn requested(&self) -> impl Iterator<Item = (&str, RequestId)> {
        self.outputs.values().filter_map(|(name, ..)| Some((name.as_str(), name.parse().ok()?)))
    }
}

/// Returns a problem with an output of the request.
fn at_output(name: &str, code: ProblemCode, message: String) -> Problem {
    problem_at("/agentOutputs", name, code, message)
}

fn problem_at(place: &str, name: &str, code: ProblemCode, message: String) -> Problem {
    let mut path = place.to_owned();
    push_pointer_token(&mut path, name);
    Problem::new(path, code, message)
}

/// Returns why an output under a request id was not used.
fn why_unused_request(flow: &StepsState, request: &RequestId) -> Option<(ProblemCode, String)> {
    match flow.attempts.get(&request.key) {
        _ if flow.results.contains_key(&request.key) => None,
        Some(&attempt) if request.attempt < attempt => {
            let waiting = RequestId { attempt, ..request.clone() };
            Some((
                ProblemCode::StaleOutput,
                format!("that attempt has ended: `{waiting}` is waiting"),
            ))
        }
        _ => Some(unasked()),
    }
}

fn unasked() -> (ProblemCode, String) {
    (ProblemCode::UnaskedOutput, "no step has asked for it".to_owned())
}

fn is_good(result: &Json) -> bool {
    result.get("ok") == Some(&Json::Bool(true))
}

/// Returns the current attempt of a key. The id of a step in a loop means the first iteration that
/// waits.
fn waiting_attempt(run: &Run, name: &StepKey) -> Option<(StepKey, u32)> {
    let flow = run.program.steps()?;
    let waiting = || {
        let keys = run
            .scheduler
            .asks
            .keys()
            .filter_map(|ask| run.agents.get(&ask.agent)?.visit.location.step().cloned());
        keys.filter(|key| name.iterations.is_empty() && key.step == name.step).min()
    };
    let key = flow.attempts.contains_key(name).then(|| name.clone()).or_else(waiting)?;
    let attempt = *flow.attempts.get(&key)?;
    Some((key, attempt))
}

/// Returns the name by which a run knows an output with this request id.
fn known_as(RequestId { key, attempt, .. }: &RequestId) -> String {
    format!("{key}:{attempt}")
}

fn has_step(document: &Document, name: &str) -> bool {
    let key: Option<StepKey> = name.parse().ok();
    key.is_some_and(|key| document.find_key(&key).is_some()) || document.find(name).is_some()
}

/// Returns the name by which a run knows an output, and its step.
fn named(document: &Document, name: &str) -> Option<(String, StepIndex)> {
    if let Ok(id) = name.parse() {
        let id: RequestId = id;
        return Some((known_as(&id), document.find_key(&id.key)?));
    }
    let key: Option<StepKey> = name.parse().ok();
    let step = key.and_then(|key| document.find_key(&key)).or_else(|| document.find(name))?;
    Some((name.to_owned(), step))
}
/// Returns the schema of an agent step; other steps have none.
fn agent_schema(document: &Document, step: StepIndex) -> Option<&Arc<Json>> {
    match &document.step(step).kind {
        StepKind::Agent(agent) => Some(&agent.schema),
        StepKind::Exec(_) | StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_) => None,
    }
}
