//! Compares repeated calls of the tool by a host with the reference.
//!
//! There are three styles of calls: every call repeats all outputs, every call brings the results
//! of the last reply, or a `runId` names a stored run. The documents run no programs.

use std::collections::BTreeSet;

use raymond_core::run::Settings;
use raymond_core::run::program::AnswerSource;
use raymond_engine::call::{CallChannels, Tool, Workspaces};
use serde_json::{Map, Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::agree::compare;
use super::random;
use super::random_replies::RandomReplies;
use super::reference::interpret;
use crate::dice::Dice;
use crate::step_trace::StepTrace;

/// More calls than any of these documents needs.
const MAX_CALLS: usize = 120;

/// Documents with more questions would take too long.
const MAX_QUESTIONS: usize = 25;

/// How a host continues a run with its next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStyle {
    /// With all outputs so far.
    Bare,
    /// With the results and attempts of the last reply, and all outputs.
    Echo,
    /// With the id of a stored run.
    Run,
}

struct Host {
    tool: Tool,
    style: CallStyle,
    replies: RandomReplies,
    dice: Dice,
    request: Json,
    asked: BTreeSet<String>,
}

impl Host {
    async fn call(&self) -> Json {
        let (progress, _receiver) = tokio::sync::mpsc::unbounded_channel();
        let channels = CallChannels { cancel: CancellationToken::new(), progress };
        self.tool.call(self.request.clone(), channels).await.into_json()
    }

    /// Adds outputs for the requests of a reply to the next call.
    fn answer(&mut self, reply: &Json) {
        match self.style {
            CallStyle::Bare => {}
            CallStyle::Echo => {
                self.request["results"] = reply["results"].clone();
                self.request["attempts"] = reply["attempts"].clone();
            }
            CallStyle::Run => {
                self.request["agentOutputs"] = json!({});
                self.request["attempts"] = json!({});
            }
        }
        let requests = reply["requests"].as_array().cloned().unwrap_or_default();
        let certain = self.dice.index(requests.len().max(1));
        for (index, request) in requests.iter().enumerate() {
            if index != certain && self.dice.percent(40) {
                continue;
            }
            let key = request["key"].as_str().unwrap();
            let attempt = u32::try_from(request["attempt"].as_u64().unwrap()).unwrap();
            let input = request.get("input").map_or_else(|| json!([]), |input| json!([input]));
            let allow = request.get("allow").cloned().unwrap_or_else(|| json!([]));
            let settings = json!({ "model": request["model"], "allow": allow });
            let question = json!([request["prompt"], input, settings]);
            self.asked.insert(format!("{key} {attempt} {question}"));
            let (answer, _) = self.replies.answer(key, attempt);
            let by_id = match self.style {
                CallStyle::Bare => false,
                // Request ids only: a collected failure is not in the results of a reply.
                CallStyle::Echo => true,
                CallStyle::Run => self.dice.percent(50),
            };
            let name = if by_id { request["requestId"].as_str().unwrap() } else { key };
            self.request["agentOutputs"][name] = answer;
            self.request["attempts"][key] = attempt.into();
        }
    }

    async fn call_until_done(&mut self) -> Result<Json, String> {
        let mut reply = Json::Null;
        for _ in 0..MAX_CALLS {
            reply = self.call().await;
            if reply["status"] != "needs_agent" {
                return Ok(reply);
            }
            self.answer(&reply);
        }
        Err(format!("the calls do not end: {reply:#} after {:#}", self.request))
    }
}

/// Returns the trace of a reply, without the plain ids of steps in loops.
fn trace_of_reply(reply: &Json, asked: BTreeSet<String>, document: &Json) -> StepTrace {
    let output = reply.get("output").cloned();
    let mut trace = StepTrace { asked, output, ..StepTrace::default() };
    let outside = outside_loops(&document["steps"]);
    for (name, result) in reply["results"].as_object().unwrap() {
        if name.contains('[') || outside.contains(name) {
            let mut result = result.clone();
            if result["ok"] == false {
                result.as_object_mut().unwrap().retain(|key, _| key == "ok" || key == "error");
            }
            trace.results.insert(name.clone(), result);
        }
    }
    for (key, attempt) in reply["attempts"].as_object().unwrap() {
        let attempt = u32::try_from(attempt.as_u64().unwrap()).unwrap();
        let id = key.rsplit('.').next().unwrap();
        // Without a run, one attempt more says that a collected failure has used up all of them.
        let most = retries(&document["steps"], id).unwrap_or(u32::MAX);
        trace.attempts.insert(key.clone(), attempt.min(most));
    }
    if reply["ok"] == false {
        let text = |key: &str| reply[key].as_str().unwrap().to_owned();
        trace.failures.push((text("stepId"), text("error")));
    }
    trace
}

/// Returns the attempts of an agent step.
fn retries(steps: &Json, id: &str) -> Option<u32> {
    steps.as_array().into_iter().flatten().find_map(|step| {
        if step["id"] == id {
            let retries = step.get("retries").map_or(3, |retries| retries.as_u64().unwrap());
            return u32::try_from(retries).ok();
        }
        ["then", "else", "body"].into_iter().find_map(|list| retries(&step[list], id))
    })
}

fn outside_loops(steps: &Json) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for step in steps.as_array().into_iter().flatten() {
        ids.insert(step["id"].as_str().unwrap().to_owned());
        ids.append(&mut outside_loops(&step["then"]));
        ids.append(&mut outside_loops(&step["else"]));
    }
    ids
}

async fn compare_calls(seed: u64, style: CallStyle) -> Result<usize, String> {
    let directory = tempfile::tempdir().unwrap();
    let workspaces =
        Workspaces { given: Some(directory.path().to_owned()), ..Workspaces::default() };
    let (document, replies) = (
        random::document_without_programs(seed),
        RandomReplies { large: 0, ..RandomReplies::new(seed) },
    );
    let expected = interpret(&document, &Map::new(), replies);
    if expected.asked.len() > MAX_QUESTIONS || expected.is_indeterminate {
        return Ok(0);
    }
    let mut request = json!({
        "action": "run", "workflow": document, "agentOutputs": {}, "attempts": {},
    });
    if style == CallStyle::Run {
        request["runId"] = "r".into();
    }
    let tool = Tool { workspaces, settings: Settings::default(), registry: None };
    let (dice, asked) = (Dice::new(seed), BTreeSet::new());
    let mut host = Host { tool, style, replies, dice, request, asked };
    let reply = host.call_until_done().await?;
    let again = (style == CallStyle::Run).then_some(host.call().await);
    if again.is_some_and(|again| again["results"] != reply["results"]) {
        return Err(format!("another call changes what was left: {reply:#}"));
    }
    let found = trace_of_reply(&reply, host.asked, &document);
    let disagree = |why| format!("{why}\n{document:#}\n{reply:#}");
    compare(&document, &expected, &found, AnswerSource::Caller).map_err(disagree)?;
    Ok(expected.asked.len())
}

#[tokio::test(flavor = "current_thread")]
async fn calls_give_the_results_of_the_reference() {
    let mut questions = 0;
    for seed in 0..18 {
        let style =
            [CallStyle::Bare, CallStyle::Echo, CallStyle::Run][usize::try_from(seed % 3).unwrap()];
        match compare_calls(seed, style).await {
            Ok(count) => questions += count,
            Err(why) => panic!("seed {seed}, {style:?}: {why}"),
        }
    }
    assert!(questions > 20, "{questions} questions");
}
