//! A document of steps: every program that succeeds leaves a line, and so does every attempt.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Scene, Strikes};
use crate::harness::{Project, Running};

pub(crate) struct Steps(pub(super) Project);

/// The results of steps and the attempts of requests, by name, and the programs that ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    left: BTreeMap<String, Value>,
    ended: Vec<String>,
}

/// How many programs run at the same time.
const SIDE_BY_SIDE: usize = 2;

/// How many turns may be in flight: a waiting question does not block programs of other items.
const IN_FLIGHT: usize = 3;

/// Programs and questions: in sequence, in a parallel loop, and in a `while` loop.
pub(super) fn document() -> Value {
    let shell = |name: &str| format!("echo {name} >> begun; sleep 0.01; echo {name} >> ended");
    let exec = |id: &str, name: &str| json!({ "id": id, "kind": "exec", "shell": shell(name) });
    let ask = |id: &str| json!({ "id": id, "kind": "agent", "prompt": id, "schema": { "type": "integer" } });
    let item = "{{locals.item}}";
    json!({
        "name": "killed", "vars": { "list": ["a", "b", "c"] },
        "steps": [
            exec("first", "first"),
            ask("plan"),
            {
                "id": "all", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item",
                "parallel": true, "maxParallel": SIDE_BY_SIDE, "onError": "collect",
                "body": [exec("try", &format!("try-{item}")), ask("look"), exec("note", &format!("note-{item}"))],
            },
            {
                "id": "again", "kind": "while", "maxIters": 2, "onMaxIters": "continue",
                "until": { "op": "gt", "path": "$.results.judge.json", "value": 7 },
                "body": [exec("fix", "fix"), ask("judge")],
            },
            exec("last", "last"),
        ],
    })
}

impl Steps {
    fn left(&self) -> BTreeMap<String, Value> {
        let mut left = BTreeMap::new();
        for event in self.0.events("r", "stepped") {
            let event = &event["event"];
            for (word, value) in [("done", "stored"), ("asked", "attempt")] {
                if let Some(key) = event[word]["key"].as_str() {
                    let earlier = left.insert(format!("{word} {key}"), event[word][value].clone());
                    assert!(word == "asked" || earlier.is_none(), "{key} is done twice");
                }
            }
        }
        left
    }

    /// How many programs were started, by the journal.
    fn programs(&self) -> usize {
        let queued = self.0.events("r", "turn_queued");
        let is_program = |turn: &Value| {
            queued.iter().any(|queued| queued["turn"] == *turn && queued["lane"] == "script")
        };
        let started = self.0.events("r", "turn_started");
        started.iter().filter(|started| is_program(&started["turn"])).count()
    }
}

impl Scene for Steps {
    type Outcome = Outcome;

    fn new() -> Self {
        let document = document();
        let replies = "plan: { text: '1', delay: 10ms, cost: 0.01 }\n\
            look: { text: '2', delay: 10ms, cost: 0.01 }\n\
            judge: { text: '5', delay: 10ms, cost: 0.01 }\n";
        Self(Project::of(&[("flow.json", &document.to_string()), ("replies.yaml", replies)]))
    }

    fn start(&self, words: &[&str]) -> Running {
        self.0.spawn(words[0], &words[1..])
    }

    fn project(&self) -> &Project {
        &self.0
    }

    fn words(&self) -> &'static str {
        "run flow.json --replies replies.yaml --run-id r --json --or-resume"
    }

    fn outcome(&self) -> Outcome {
        let mut ended: Vec<String> = self.0.read("ended").lines().map(str::to_owned).collect();
        ended.sort();
        Outcome { left: self.left(), ended }
    }

    #[track_caller]
    fn audit(&self, expected: &Outcome, strikes: Strikes) {
        let found = self.outcome();
        assert_eq!(found.left, expected.left);
        self.starts_few_again(IN_FLIGHT, strikes);
        let (begun, programs) = (self.0.read("begun").lines().count(), self.programs());
        assert!(begun <= programs, "{begun} programs began, {programs} were started");
        // An interrupted program may have finished, at most once for each interruption.
        let (repeats, interruptions) =
            (found.ended.len() - expected.ended.len(), strikes.interruptions());
        assert!(
            repeats <= SIDE_BY_SIDE * interruptions,
            "{repeats} programs ended again, {interruptions} interruptions"
        );
        for line in &expected.ended {
            assert!(found.ended.contains(line), "{line} is lost");
        }
    }
}
