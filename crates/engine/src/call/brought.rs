//! What a request brings to its run: outputs, weighed by their schemas, and what is known already.

use std::collections::BTreeMap;

use raymond_core::crayfish::call::Output;
use raymond_core::crayfish::document::StepIndex;
use raymond_core::crayfish::flow::Stored;
use raymond_core::crayfish::key::RequestId;
use raymond_core::crayfish::problem::push_token;
use raymond_core::crayfish::{Call, Code, Document, Flaw, Key, Kind, Problem, Reply, Request};
use raymond_core::ids::RunId;
use raymond_core::run::Run;
use raymond_core::run::input::Verdict;
use raymond_core::value::Value;
use raymond_store::{Blobs, blobs};
use serde_json::{Map, Value as Json, json};

use super::{mistaken, refused};
use crate::observe;
use crate::schemas::Schemas;

/// Who knows what happened in earlier calls, beside the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownBy {
    /// Nobody.
    Nobody,
    /// A record, from now on.
    NewRecord,
    /// A record.
    Record,
}

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
            let step = document.find_key(&key)?;
            matches!(document.step(step).kind, Kind::Exec(_) | Kind::Agent(_)).then_some(key)
        };
        let attempts = attempts.into_iter().filter_map(|(name, n)| Some((keyed(&name)?, n)));
        let is_good = |result: &Json| result.get("ok") == Some(&Json::Bool(true));
        let results = results.into_iter().filter(|(_, result)| is_good(result));
        let results = results.filter_map(|(name, result)| Some((keyed(&name)?, result)));
        Self { outputs, attempts: attempts.collect(), results: results.collect() }
    }

    /// Whether an output is there for an attempt, and leads to the next one.
    fn is_useless(&self, key: &Key, attempt: u32) -> bool {
        let output = self.outputs.get(&format!("{key}:{attempt}"));
        output.is_some_and(|(.., verdict)| matches!(verdict, Verdict::Invalid(_)))
    }

    /// As a run takes it. An output for an attempt that nobody asked for yet is refused, unless those
    /// for the attempts before it are there and will not do.
    pub(super) fn call(
        &self,
        run: &Run,
        (known_by, blobs): (KnownBy, &Blobs),
    ) -> Result<Call, Box<Reply>> {
        let none = BTreeMap::new();
        let asked = match known_by {
            KnownBy::Nobody => &self.attempts,
            KnownBy::NewRecord | KnownBy::Record => {
                run.flow.as_ref().map_or(&none, |flow| &flow.attempts)
            }
        };
        let early = self.requested().filter_map(|(name, id)| {
            let attempt = asked.get(&id.key).copied().unwrap_or(1);
            let mut before = attempt..id.attempt;
            (!before.all(|attempt| self.is_useless(&id.key, attempt))).then(|| {
                let message = format!("{} is at attempt {attempt}", id.key);
                at_output(name, Flaw::UnaskedOutput, message)
            })
        });
        let early: Vec<Problem> = early.collect();
        if !early.is_empty() {
            return Err(mistaken(Code::UnaskedOutput, "the request", early));
        }
        self.stored(known_by, blobs)
            .map_err(|error| refused(Code::StoreFailed, error.to_string(), Vec::new()))
    }

    /// Outputs for requests of a run that does not exist: whoever sends them means another one, or one
    /// that is gone, and nothing should be done again for it.
    pub(super) fn of_no_run(&self, run: &RunId) -> Vec<Problem> {
        let message = format!("there is no run {run} yet: nothing has asked for it");
        let of_it = self.requested().filter(|(_, id)| id.run.as_ref() == Some(run));
        of_it.map(|(name, _)| at_output(name, Flaw::UnaskedOutput, message.clone())).collect()
    }

    fn stored(&self, known_by: KnownBy, blobs: &Blobs) -> Result<Call, blobs::Error> {
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
        // A record that exists knows better.
        let seeds = self.results.iter().filter(|_| known_by != KnownBy::Record);
        for (key, result) in seeds {
            results.insert(key.clone(), store(result.clone())?);
        }
        let alone = known_by == KnownBy::Nobody;
        Ok(Call { results, attempts: self.attempts.clone(), alone, outputs })
    }

    /// What was brought and not used, and why: an attempt is over, or nobody asks for it. What is
    /// done already may well be brought again.
    pub(super) fn ignored(&self, run: &Run) -> Vec<Problem> {
        let Some(flow) = &run.flow else { return Vec::new() };
        let at = |key: &Key| flow.attempts.get(key).copied().unwrap_or(1);
        let weigh = |(known_as, (name, ..)): (&String, &(String, Json, Verdict))| {
            let id: Option<RequestId> = name.parse().ok();
            let key = id.as_ref().map_or_else(|| name.parse().ok(), |id| Some(id.key.clone()));
            let key: Option<Key> = key;
            let is_done = key.as_ref().is_some_and(|key| flow.results.contains_key(key));
            let is_left = flow.offers.contains_key(known_as);
            let over = id.filter(|id| is_left && id.attempt < at(&id.key));
            let (code, message) = match over {
                Some(id) => {
                    (Flaw::StaleOutput, format!("{} is at attempt {}", id.key, at(&id.key)))
                }
                None if flow.stale.contains(known_as) => {
                    (Flaw::StaleOutput, "a later attempt was asked for meanwhile".to_owned())
                }
                None if is_left && !is_done => {
                    (Flaw::UnaskedOutput, "nothing has asked for it so far".to_owned())
                }
                None => return None,
            };
            Some(at_output(name, code, message))
        };
        self.outputs.iter().filter_map(weigh).collect()
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
        if !key.iterations.is_empty() && flow.latest.get(&key.step) == Some(key) {
            results.insert(key.step.to_string(), json.clone());
        }
        results.insert(key.to_string(), json);
    }
    results
}
