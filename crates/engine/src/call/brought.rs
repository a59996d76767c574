//! What a request brings to its run: outputs, weighed by their schemas, and what is known already.

use std::collections::BTreeMap;

use raymond_core::crayfish::call::Output;
use raymond_core::crayfish::document::StepIndex;
use raymond_core::crayfish::flow::Stored;
use raymond_core::crayfish::key::RequestId;
use raymond_core::crayfish::problem::push_token;
use raymond_core::crayfish::{Call, Code, Document, Flaw, Key, Problem, Reply, Request};
use raymond_core::run::Run;
use raymond_core::run::input::Verdict;
use raymond_core::value::Value;
use raymond_store::{Blobs, blobs};
use serde_json::{Map, Value as Json, json};

use super::refused;
use crate::observe;
use crate::schemas::Schemas;

/// What a request brings.
pub(super) struct Brought {
    /// Each under the name it came under, and under the one that a run knows it by.
    outputs: BTreeMap<String, (String, Json, Verdict)>,
    attempts: BTreeMap<Key, u32>,
    results: BTreeMap<Key, Json>,
}

impl Brought {
    /// Weighs the outputs of a request, each of which some step can have asked for.
    pub(super) fn weigh(request: Request, document: &Document, schemas: &Schemas) -> Self {
        let Request { agent_outputs, attempts, results, .. } = request;
        let weighed = agent_outputs.into_iter().filter_map(|(name, json)| {
            let (known_as, step) = named(document, &name)?;
            let errors = schemas.errors(step, "/schema", &json);
            let verdict = if errors.is_empty() { Verdict::Valid } else { Verdict::Invalid(errors) };
            Some((known_as, (name, json, verdict)))
        });
        let outputs = weighed.collect();
        let keyed = |name: &str| {
            let key: Key = name.parse().ok()?;
            document.find_key(&key).map(|_| key)
        };
        let attempts = attempts.into_iter().filter_map(|(name, n)| Some((keyed(&name)?, n)));
        let is_good = |result: &Json| result.get("ok") == Some(&Json::Bool(true));
        let results = results.into_iter().filter(|(_, result)| is_good(result));
        let results = results.filter_map(|(name, result)| Some((keyed(&name)?, result)));
        Self { outputs, attempts: attempts.collect(), results: results.collect() }
    }

    /// As a run takes it. An output for an attempt that nobody asked for yet is refused.
    pub(super) fn call(&self, run: &Run, blobs: &Blobs) -> Result<Call, Box<Reply>> {
        let known = run.flow.as_ref().map(|flow| &flow.attempts);
        let asked = known.filter(|attempts| !attempts.is_empty()).unwrap_or(&self.attempts);
        let early = self.requested().filter_map(|(name, id)| {
            let attempt = asked.get(&id.key).copied().unwrap_or(1);
            (id.attempt > attempt).then(|| {
                let message = format!("{} is at attempt {attempt}", id.key);
                at_output(name, Flaw::UnaskedOutput, message)
            })
        });
        let early: Vec<Problem> = early.collect();
        if !early.is_empty() {
            return Err(refused(Code::UnaskedOutput, "an output was not asked for", early));
        }
        self.stored(blobs)
            .map_err(|error| refused(Code::StoreFailed, error.to_string(), Vec::new()))
    }

    fn stored(&self, blobs: &Blobs) -> Result<Call, blobs::Error> {
        let mut put = |bytes: &[u8]| observe::put(blobs, bytes);
        let mut store = |json: Json| {
            let value = Value::keep(&json.to_string(), &mut put)?;
            Ok::<_, blobs::Error>(Stored::new(json, value, true))
        };
        let (mut outputs, mut results) = (BTreeMap::new(), BTreeMap::new());
        for (known_as, (_, json, verdict)) in &self.outputs {
            let stored = store(json!({ "ok": true, "json": json }))?;
            outputs.insert(known_as.clone(), Output { stored, verdict: verdict.clone() });
        }
        for (key, result) in &self.results {
            results.insert(key.clone(), store(result.clone())?);
        }
        Ok(Call { results, attempts: self.attempts.clone(), outputs })
    }

    /// What was brought for an attempt that is over.
    pub(super) fn stale(&self, run: &Run) -> Vec<Problem> {
        let Some(flow) = &run.flow else { return Vec::new() };
        let at = |key: &Key| flow.attempts.get(key).copied().unwrap_or(1);
        let by_name = flow.stale.iter().filter_map(|known_as| {
            let (name, ..) = self.outputs.get(known_as)?;
            let message = "a later attempt was asked for meanwhile".to_owned();
            Some(at_output(name, Flaw::StaleOutput, message))
        });
        let by_id = self.requested().filter(|(_, id)| {
            id.attempt < at(&id.key)
                && flow.offers.contains_key(&format!("{}:{}", id.key, id.attempt))
        });
        let by_id = by_id.map(|(name, id)| {
            let message = format!("{} is at attempt {}", id.key, at(&id.key));
            at_output(name, Flaw::StaleOutput, message)
        });
        by_name.chain(by_id).collect()
    }

    /// The outputs that came under the id of a request.
    fn requested(&self) -> impl Iterator<Item = (&str, RequestId)> {
        self.outputs.values().filter_map(|(name, ..)| Some((name.as_str(), name.parse().ok()?)))
    }
}

/// Something about an output of the request.
fn at_output(name: &str, flaw: Flaw, message: String) -> Problem {
    let mut path = "/agentOutputs".to_owned();
    push_token(&mut path, name);
    Problem::new(path, flaw, message)
}

/// How a run knows an output, and the step that it is for.
fn named(document: &Document, name: &str) -> Option<(String, StepIndex)> {
    if let Ok(RequestId { key, attempt, .. }) = name.parse() {
        return Some((format!("{key}:{attempt}"), document.find_key(&key)?));
    }
    let key: Option<Key> = name.parse().ok();
    let step = key.and_then(|key| document.find_key(&key)).or_else(|| document.find(name))?;
    Some((name.to_owned(), step))
}

/// A result of every key, and of every id the latest.
pub(super) fn results(run: &Run) -> Map<String, Json> {
    let Some(flow) = &run.flow else { return Map::new() };
    let mut results = Map::new();
    for (key, stored) in &flow.results {
        let json = stored.json().cloned().unwrap_or_default();
        if !key.iterations.is_empty() {
            results.insert(key.step.to_string(), json.clone());
        }
        results.insert(key.to_string(), json);
    }
    results
}
