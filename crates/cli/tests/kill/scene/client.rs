//! A client that answers prompts as `claude` does: a worker, a callee, and their caller.

use serde_json::Value;

use super::{Scene, Strikes};
use crate::harness::{Project, Running};
use crate::stage::Stage;

pub(crate) struct Client(Stage);

/// The results, the charges, and the number of requests to the model.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    results: Value,
    charges: Vec<(String, u64, String)>,
    asked: usize,
}

/// How many clients run at the same time.
const SIDE_BY_SIDE: usize = 2;

impl Scene for Client {
    type Outcome = Outcome;

    fn new() -> Self {
        Self(Stage::prompts(&[
            ("START", "fake: say <fork next='CALL'>WORKER</fork>"),
            ("CALL", "fake: say <call return='BACK'>SUB</call>"),
            ("SUB", "fake: cost 0.25\nfake: say <result>found</result>"),
            ("WORKER", "fake: cost 0.5\nfake: say <goto>REST</goto>"),
            ("REST", "fake: say <result>worked</result>"),
            ("BACK", "fake: say <result>{{result}}!</result>"),
        ]))
    }

    fn start(&self, words: &[&str]) -> Running {
        self.0.start_program(words)
    }

    fn project(&self) -> &Project {
        &self.0.project
    }

    fn words(&self) -> &'static str {
        "run wf --run-id r --json --or-resume"
    }

    fn outcome(&self) -> Outcome {
        // A client that does not know a session rejects it without a request to the model.
        let is_paid = |charge: &(String, u64, String)| charge.1 > 0;
        let mut charges: Vec<_> = self.0.charges().into_iter().filter(is_paid).collect();
        charges.sort();
        let invocations = self.0.invocations();
        let asked = invocations.iter().filter(|invocation| invocation.refused.is_none()).count();
        let results = self.0.project.state("r")["results"].clone();
        Outcome { results, charges, asked }
    }

    /// If only owners are killed, every client finishes, and no prompt is sent twice. A client that
    /// was ended is continued once for each end.
    #[track_caller]
    fn audit(&self, expected: &Outcome, Strikes { ends, .. }: Strikes) {
        let found = self.outcome();
        self.0.leaves_nothing();
        if ends == 0 {
            assert_eq!(&found, expected, "{:#?}", self.0.turn_contexts());
        }
        assert_eq!(found.results, expected.results);
        let most = expected.asked + SIDE_BY_SIDE * ends;
        assert!(found.asked <= most, "{} > {most}: {:#?}", found.asked, self.0.turn_contexts());
    }
}
