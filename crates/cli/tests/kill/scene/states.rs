//! Forks, a call, a function and a loop: prompts with scripted replies, and scripts, in turn.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::{Scene, Strikes};
use crate::harness::{Project, Running};

pub(crate) struct States(pub(crate) Project);

/// The results, and every settled visit; each visit takes one turn.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    results: Value,
    settled: Vec<String>,
}

/// How many turns may be in flight: one of each worker, and one of their parent.
const IN_FLIGHT: usize = 3;

/// A slow script that logs the key of its visit.
fn script(tag: &str) -> String {
    format!("echo \"${{RAYMOND_VISIT#*.}}\" >> log; sleep 0.01; printf %s '{tag}'")
}

/// The visit of a turn: `main.3` of `main.3.1`.
fn visit(event: &Value) -> String {
    let (visit, _) = event["turn"].as_str().unwrap().rsplit_once('.').unwrap();
    visit.to_owned()
}

impl States {
    /// A loop of so many rounds.
    pub(crate) fn with_laps(laps: usize) -> Self {
        let again = format!(
            "echo \"${{RAYMOND_VISIT#*.}}\" >> log; n=$(cat $RAYMOND_RESULT_FILE); \
             test $n -ge {laps} && touch last && until test ! -e closed; do sleep 0.01; done && \
             echo '<goto>END</goto>' || echo \"<goto input='$((n + 1))'>LAP</goto>\""
        );
        let fork =
            "<fork next=\"CALL\" n=\"1\">WORKER</fork><fork next=\"CALL\" n=\"2\">WORKER</fork>";
        let replies = format!(
            "START: {{ text: '{fork}', delay: 10ms, cost: 0.01 }}
SUB: {{ text: '<result>deep</result>', delay: 10ms, cost: 0.01 }}
END: {{ text: '<result>the end</result>', delay: 10ms, cost: 0.01 }}
REPORT: {{ text: '<result>worked</result>', delay: 20ms, cost: 0.01 }}
"
        );
        Self(Project::of(&[
            ("wf/START.md", "begin"),
            ("wf/WORKER.sh", &script("<goto>REPORT</goto>")),
            ("wf/REPORT.md", "report {{n}}"),
            ("wf/CALL.sh", &script("<call return=\"BACK\">SUB</call>")),
            ("wf/SUB.md", "sub"),
            ("wf/BACK.sh", &script("<function return=\"LAP\">COUNT</function>")),
            ("wf/COUNT.sh", &script("<result>1</result>")),
            ("wf/LAP.sh", &again),
            ("wf/END.md", "end"),
            ("replies.yaml", &replies),
        ]))
    }

    /// Makes the last lap wait until it is opened.
    pub(crate) fn close_last_lap(&self) {
        self.0.write("closed", "");
    }

    pub(crate) fn open_last_lap(&self) {
        fs::remove_file(self.0.path("closed")).unwrap();
    }

    /// Whether the last lap has begun.
    pub(crate) fn is_in_last_lap(&self) -> bool {
        self.0.path("last").exists()
    }

    /// How many turns are settled by now.
    pub(crate) fn settled(&self) -> usize {
        self.0.events("r", "turn_settled").len()
    }
}

impl Scene for States {
    type Outcome = Outcome;

    fn new() -> Self {
        Self::with_laps(2)
    }

    fn start(&self, words: &[&str]) -> Running {
        self.0.spawn(words[0], &words[1..])
    }

    fn project(&self) -> &Project {
        &self.0
    }

    fn words(&self) -> &'static str {
        "run wf --replies replies.yaml --run-id r --json --or-resume"
    }

    fn outcome(&self) -> Outcome {
        let mut settled: Vec<String> =
            self.0.events("r", "turn_settled").iter().map(visit).collect();
        settled.sort();
        Outcome { results: self.0.state("r")["results"].clone(), settled }
    }

    #[track_caller]
    fn audit(&self, expected: &Outcome, strikes: Strikes) {
        assert_eq!(&self.outcome(), expected);
        self.starts_few_again(IN_FLIGHT, strikes);
        let mut unique = expected.settled.clone();
        unique.dedup();
        assert_eq!(unique, expected.settled, "every visit is settled once");
        let mut starts: BTreeMap<String, usize> = BTreeMap::new();
        for event in self.0.events("r", "turn_started") {
            *starts.entry(visit(&event)).or_default() += 1;
        }
        let mut traces: BTreeMap<String, usize> = BTreeMap::new();
        for visit in self.0.read("log").lines() {
            *traces.entry(visit.to_owned()).or_default() += 1;
        }
        for (visit, traces) in &traces {
            let starts = starts[visit];
            assert!(*traces <= starts, "{visit} ran {traces} times, started {starts}");
        }
        let scripts = expected.settled.iter().filter(|visit| traces.contains_key(*visit)).count();
        assert_eq!(scripts, traces.len(), "every trace is that of a visit that was settled");
    }
}
