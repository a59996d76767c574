//! The tool as a host calls it, again and again, and the reference: they come to the same.
//!
//! Three ways to call: without any memory, everything said so far in each call; with the results of
//! the last reply; and by a `runId`, which remembers all. Nothing here runs a program.

use std::collections::BTreeSet;

use raymond_core::run::Settings;
use raymond_core::run::program::Answers;
use raymond_engine::call::{Follower, Tool, Workspaces};
use serde_json::{Map, Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::agree::compare;
use super::random;
use super::reference::interpret;
use super::world::World;
use crate::dice::Dice;
use crate::step_trace::Told;

/// More calls than any of these documents needs.
const MOST_CALLS: usize = 120;

/// More questions take too long.
const MOST_QUESTIONS: usize = 25;

/// How a host calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With everything that was said so far.
    Bare,
    /// With the results and attempts of the last reply, and all outputs.
    Echo,
    /// By the id of a run.
    Run,
}

struct Host {
    tool: Tool,
    way: Way,
    world: World,
    dice: Dice,
    request: Json,
    asked: BTreeSet<String>,
}

impl Host {
    async fn call(&self) -> Json {
        let (progress, _nobody) = tokio::sync::mpsc::unbounded_channel();
        let follower = Follower { cancel: CancellationToken::new(), progress };
        self.tool.call(self.request.clone(), follower).await.into_json()
    }

    /// What the next call brings for the requests of a reply.
    fn answer(&mut self, reply: &Json) {
        match self.way {
            Way::Bare => {}
            Way::Echo => {
                self.request["results"] = reply["results"].clone();
                self.request["attempts"] = reply["attempts"].clone();
            }
            Way::Run => {
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
            let question = json!([request["prompt"], input]);
            self.asked.insert(format!("{key} {attempt} {question}"));
            let (answer, _) = self.world.answer(key, attempt);
            let by_id = match self.way {
                Way::Bare => false,
                // Only these can be repeated: a failure that was collected is no result to echo.
                Way::Echo => true,
                Way::Run => self.dice.percent(50),
            };
            let name = if by_id { request["requestId"].as_str().unwrap() } else { key };
            self.request["agentOutputs"][name] = answer;
            self.request["attempts"][key] = attempt.into();
        }
    }

    async fn talks(&mut self) -> Result<Json, String> {
        let mut reply = Json::Null;
        for _ in 0..MOST_CALLS {
            reply = self.call().await;
            if reply["status"] != "needs_agent" {
                return Ok(reply);
            }
            self.answer(&reply);
        }
        Err(format!("the calls do not end: {reply:#} after {:#}", self.request))
    }
}

/// What a reply says, without the plain ids of steps in loops.
fn told(reply: &Json, asked: BTreeSet<String>, document: &Json) -> Told {
    let mut told = Told { asked, ..Told::default() };
    let outside = outside_loops(&document["steps"]);
    for (name, result) in reply["results"].as_object().unwrap() {
        if name.contains('[') || outside.contains(name) {
            let mut result = result.clone();
            if result["ok"] == false {
                result.as_object_mut().unwrap().retain(|key, _| key == "ok" || key == "error");
            }
            told.results.insert(name.clone(), result);
        }
    }
    for (key, attempt) in reply["attempts"].as_object().unwrap() {
        told.attempts.insert(key.clone(), u32::try_from(attempt.as_u64().unwrap()).unwrap());
    }
    if reply["ok"] == false {
        let text = |key: &str| reply[key].as_str().unwrap().to_owned();
        told.failures.push((text("stepId"), text("error")));
    }
    told
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

async fn agrees(seed: u64, way: Way) -> Result<usize, String> {
    let directory = tempfile::tempdir().unwrap();
    let workspaces =
        Workspaces { given: Some(directory.path().to_owned()), ..Workspaces::default() };
    let (document, world) = (random::talk(seed), World { large: 0, ..World::new(seed) });
    let expected = interpret(&document, &Map::new(), world);
    if expected.asked.len() > MOST_QUESTIONS || expected.vague {
        return Ok(0);
    }
    let mut request = json!({
        "action": "run", "workflow": document, "agentOutputs": {}, "attempts": {},
    });
    if way == Way::Run {
        request["runId"] = "r".into();
    }
    let tool = Tool { workspaces, settings: Settings::default() };
    let (dice, asked) = (Dice::new(seed), BTreeSet::new());
    let mut host = Host { tool, way, world, dice, request, asked };
    let reply = host.talks().await?;
    let again = (way == Way::Run).then_some(host.call().await);
    if again.is_some_and(|again| again["results"] != reply["results"]) {
        return Err(format!("another call changes what was left: {reply:#}"));
    }
    let found = told(&reply, host.asked, &document);
    let disagree = |why| format!("{why}\n{document:#}\n{reply:#}");
    compare(&document, &expected, &found, Answers::Caller).map_err(disagree)?;
    Ok(expected.asked.len())
}

#[tokio::test(flavor = "current_thread")]
async fn calls_come_to_what_the_reference_comes_to() {
    let mut questions = 0;
    for seed in 0..18 {
        let way = [Way::Bare, Way::Echo, Way::Run][usize::try_from(seed % 3).unwrap()];
        match agrees(seed, way).await {
            Ok(count) => questions += count,
            Err(why) => panic!("seed {seed}, {way:?}: {why}"),
        }
    }
    assert!(questions > 20, "{questions} questions");
}
