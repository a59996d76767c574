//! The request of a call: a workflow, earlier results, and outputs for agent steps.
//!
//! All problems are reported at once, each with its pointer. Whether a step asked for an output is
//! checked here as far as the document shows it; the engine checks the attempts of a run.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::crayfish::document::{Document, StepIndex, StepKind};
use crate::crayfish::key::{RequestId, StepKey};
use crate::crayfish::problem::{Problem, Report, quoted};
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::validate::fields::{Fields, expected, leaving};
use crate::ids::RunId;

#[cfg(test)]
mod tests;

/// The keys of a request, as a caller spells them.
pub(in crate::crayfish) const KEYS: &[&str] = &[
    "action",
    "workflow",
    "vars",
    "agentOutputs",
    "attempts",
    "results",
    "runId",
    "agentId",
    "ref",
];

/// The most directories that are searched for schemas.
pub const MOST_SCHEMA_PATHS: usize = 100;

/// The keys of `ref`.
pub(in crate::crayfish) const REF_KEYS: &[&str] = &["schemaPaths"];

/// One call of the tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRequest {
    /// The document, not checked yet.
    pub workflow: Value,
    /// Variables that replace those of the document.
    pub vars: Map<String, Value>,
    /// Outputs of agent steps, by request id, key or step id.
    pub agent_outputs: Map<String, Value>,
    /// Outputs that are not JSON, with the problem; only an entry that receives text can have them.
    pub unread: BTreeMap<String, Problem>,
    /// The attempt that was requested last, by key.
    pub attempts: BTreeMap<String, u32>,
    /// Results of earlier calls, by key.
    pub results: Map<String, Value>,
    /// The run, if it has a journal.
    pub run: Option<RunId>,
    /// The agent whose workspace is used.
    pub agent: Option<String>,
    /// Directories of schemas, relative to the workspace, in the order of the search.
    pub schema_paths: Vec<String>,
}

impl CallRequest {
    /// Reads a request, or returns everything that is wrong with it.
    pub fn parse(mut value: Value) -> Result<Self, Vec<Problem>> {
        let mut report = Report::new();
        let read = Self::read(&mut report, &value);
        // Large fields are moved out after the checks, because a copy would double the memory.
        let request = read.map(|read| Self {
            workflow: value.get_mut("workflow").map(Value::take).unwrap_or_default(),
            vars: take(&mut value, "vars"),
            agent_outputs: take(&mut value, "agentOutputs"),
            results: take(&mut value, "results"),
            ..read
        });
        report.settle(request)
    }

    fn read(report: &mut Report, value: &Value) -> Option<Self> {
        // A common mistake: the caller sent the workflow as the whole request.
        if value.get("steps").is_some() && value.get("workflow").is_none() {
            report.add(
                ProblemCode::MissingKey,
                "this is a workflow: send it under the key `workflow` of a request",
            );
            return None;
        }
        let fields = Fields::open(report, value, "a request")?.known(report, "a request", KEYS);
        fields.choice(report, "action", &["run"]);
        match fields.required(report, "workflow") {
            Some(Value::String(_)) => {
                let message = "this is a text: send the workflow itself, an object";
                report.add_at("workflow", ProblemCode::WrongType, message);
            }
            // Only the type is checked here: `Document::parse` reports the rest.
            Some(_) => drop(fields.object(report, "workflow")),
            None => {}
        }
        fields.object(report, "vars");
        fields.object(report, "agentOutputs");
        let attempts = attempts(report, &fields);
        for (key, result) in fields.object(report, "results").into_iter().flatten() {
            if !result.is_object() {
                let message = expected("the result of a step, an object,", result);
                report
                    .under("results", |report| report.add_at(key, ProblemCode::WrongType, message));
            }
        }
        let run = fields.string(report, "runId").and_then(|id| match id.parse() {
            Ok(id) => Some(id),
            Err(bad) => {
                let bad: crate::ids::BadRunId = bad;
                report.add_at("runId", ProblemCode::BadId, bad.to_string());
                None
            }
        });
        Some(Self {
            // Placeholders: `parse` moves the large fields here after the checks.
            workflow: Value::Null,
            vars: Map::new(),
            agent_outputs: Map::new(),
            unread: BTreeMap::new(),
            attempts,
            results: Map::new(),
            run,
            agent: fields.string(report, "agentId").map(str::to_owned),
            schema_paths: schema_paths(report, &fields),
        })
    }

    /// Returns problems for outputs and attempts that no step of this document can have requested.
    /// An output of a finished step, or of one not reached yet, is allowed: callers may repeat
    /// requests.
    pub fn unasked(&self, document: &Document) -> Vec<Problem> {
        let mut report = Report::new();
        for name in self.agent_outputs.keys() {
            if asks(document, name, self.run.as_ref()) {
                continue;
            }
            let meant = match &self.run {
                Some(run) if asks(document, name, None) => {
                    format!("; with a run it is {}", quoted(&format!("{run}:{name}")))
                }
                Some(_) | None => meant(&mut report, document, name),
            };
            let message = beyond(document, name, self.run.as_ref())
                .unwrap_or_else(|| format!("no agent step asks for {}{meant}", quoted(name)));
            report.under("agentOutputs", |report| {
                report.add_at(name, ProblemCode::UnaskedOutput, message);
            });
        }
        for name in self.attempts.keys().filter(|name| done(document, name).is_none()) {
            let meant = meant(&mut report, document, name);
            let message = format!("no step has the key {}{meant}", quoted(name));
            report.under("attempts", |report| {
                report.add_at(name, ProblemCode::UnaskedOutput, message);
            });
        }
        report.problems()
    }
}

fn take(value: &mut Value, key: &str) -> Map<String, Value> {
    match value.get_mut(key).map(Value::take) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn attempts(report: &mut Report, fields: &Fields<'_>) -> BTreeMap<String, u32> {
    let Some(given) = fields.object(report, "attempts") else { return BTreeMap::new() };
    let attempts = Fields::from(given, "`attempts`");
    let mut read = BTreeMap::new();
    report.under("attempts", |report| {
        for key in given.keys() {
            let attempt = attempts.whole(report, key, &(1..=u32::MAX.into()));
            read.extend(attempt.and_then(|n| u32::try_from(n).ok()).map(|n| (key.clone(), n)));
        }
    });
    read
}

fn schema_paths(report: &mut Report, fields: &Fields<'_>) -> Vec<String> {
    let Some(value) = fields.get("ref") else { return Vec::new() };
    report.under("ref", |report| {
        let Some(fields) = Fields::open(report, value, "`ref`") else { return Vec::new() };
        let fields = fields.known(report, "`ref`", REF_KEYS);
        let paths = fields.array(report, "schemaPaths").unwrap_or_default();
        if paths.len() > MOST_SCHEMA_PATHS {
            let message = format!("there may be {MOST_SCHEMA_PATHS} of them, not {}", paths.len());
            report.add_at("schemaPaths", ProblemCode::OutOfRange, message);
            return Vec::new();
        }
        report.under("schemaPaths", |report| {
            let read = |(index, path)| report.item(index, |report| schema_path(report, path));
            paths.iter().enumerate().filter_map(read).collect()
        })
    })
}

fn schema_path(report: &mut Report, value: &Value) -> Option<String> {
    let Value::String(path) = value else {
        report.add(ProblemCode::WrongType, expected("a string", value));
        return None;
    };
    match leaving(path) {
        Some(message) => {
            report.add(ProblemCode::EscapingPath, message);
            None
        }
        None => Some(path.clone()),
    }
}

fn attempts_of(document: &Document, key: &StepKey) -> Option<u32> {
    match &document.step(document.find_key(key)?).kind {
        StepKind::Agent(agent) => Some(agent.retries.get()),
        StepKind::Exec(_) | StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_) => None,
    }
}

/// Returns whether an agent step can have requested an output under this name.
fn asks(document: &Document, name: &str, run: Option<&RunId>) -> bool {
    if let Ok(id) = name.parse::<RequestId>() {
        let attempts = attempts_of(document, &id.key);
        // An answer to another run must not be taken for this one.
        return id.run.as_ref() == run && attempts.is_some_and(|most| id.attempt <= most);
    }
    // The id of a step in a loop stands for its first key that waits for an output.
    let by_id = || document.find(name).map(|index| &document.step(index).kind);
    name.parse().is_ok_and(|key| attempts_of(document, &key).is_some())
        || matches!(by_id(), Some(StepKind::Agent(_)))
}

/// Returns the message for a name whose only mistake is an attempt beyond the step's limit.
fn beyond(document: &Document, name: &str, run: Option<&RunId>) -> Option<String> {
    let id: RequestId = name.parse().ok().filter(|id: &RequestId| id.run.as_ref() == run)?;
    let most = attempts_of(document, &id.key)?;
    let noun = if most == 1 { "attempt" } else { "attempts" };
    Some(format!("{} has {most} {noun}", quoted(&id.key.to_string())))
}

/// Suggests the agent step whose name is closest.
fn meant(report: &mut Report, document: &Document, name: &str) -> String {
    let id: Option<RequestId> = name.parse().ok();
    let key: Option<StepKey> = id.map_or_else(|| name.parse().ok(), |id| Some(id.key));
    let agents = document.steps().iter().filter(|step| matches!(step.kind, StepKind::Agent(_)));
    let word = key.as_ref().map_or(name, |key| key.step.as_str());
    report.meant(word, agents.map(|step| step.id.as_str()).filter(|id| *id != word))
}

/// Returns the key and step of a name in `results` or `attempts`, if it is an exec or agent step.
pub fn done(document: &Document, name: &str) -> Option<(StepKey, StepIndex)> {
    let key: StepKey = name.parse().ok()?;
    // Replies show the latest result of a step in a loop under its id, and callers send it back.
    let by_id = || key.iterations.is_empty().then(|| document.find(name)).flatten();
    let step = document.find_key(&key).or_else(by_id)?;
    matches!(document.step(step).kind, StepKind::Exec(_) | StepKind::Agent(_))
        .then_some((key, step))
}
