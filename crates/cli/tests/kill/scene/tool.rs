//! The document of [`super::steps`] as a call of the tool: the caller knows all answers, and calls
//! again with the same `runId`.

use serde_json::{Value, json};

use super::steps::{Outcome, Steps, document};
use super::{Scene, Strikes};
use crate::harness::{Project, Running};

pub(crate) struct Tool(Steps);

impl Scene for Tool {
    type Outcome = Outcome;

    fn new() -> Self {
        let looks = (0..3).map(|item| (format!("all[{item}].look"), json!(2)));
        let judges = (0..2).map(|round| (format!("again[{round}].judge"), json!(5)));
        let plan = ("plan".to_owned(), json!(1));
        let answers: Value = looks.chain(judges).chain([plan]).collect();
        let request = json!({
            "action": "run", "runId": "r", "workflow": document(), "agentOutputs": answers,
        });
        Self(Steps(Project::of(&[("request.json", &request.to_string())])))
    }

    /// The request is read from its file.
    fn start(&self, words: &[&str]) -> Running {
        let reading = ["-c", "exec \"$0\" \"$@\" < request.json"];
        self.project().spawn("sh", &[&reading, words].concat())
    }

    fn project(&self) -> &Project {
        self.0.project()
    }

    fn words(&self) -> &'static str {
        "crayfish"
    }

    fn outcome(&self) -> Outcome {
        self.0.outcome()
    }

    #[track_caller]
    fn audit(&self, expected: &Outcome, strikes: Strikes) {
        self.0.audit(expected, strikes);
    }
}
