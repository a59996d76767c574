//! A run whose turn can be killed at many points: the model waits, then the tool, then the model
//! again.

use std::fs;

use raymond_testkit::model::{RecordedRequest, RequestOutcome};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::clients;
use crate::harness::until;
use crate::stage::{RUN, Stage};

/// Where the turn waits, in this order.
pub(crate) const GATES: [&str; 3] = ["first", "tool", "last"];

/// Flags that allow every tool.
pub(crate) const FLAGS: &str = "--allow Bash";

/// The prompt of the turn. The tool writes a line when it starts and one when it ends.
const WORK: &str = "model: wait first
    model: tool Bash {\"command\":\"bash hold.sh\"}
    model: wait last
    model: say <result>done</result>";
const HOLD: &str = "echo began >> tool.log
touch \"$HOME/gates/tool.waiting\"
until test -e \"$HOME/gates/tool\"; do sleep 0.02; done
echo ended >> tool.log
";

/// How the turn gets its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Fresh,
    /// By `goto`.
    Resumed,
    /// By `call`.
    Branching,
}

pub(crate) const CALL: &str = "<call return='BACK'>WORK</call>";
pub(crate) const GOTO: &str = "<goto>WORK</goto>";

impl Kind {
    /// The state of the turn.
    pub(crate) const fn state(self) -> &'static str {
        match self {
            Self::Fresh => "START",
            Self::Resumed | Self::Branching => "WORK",
        }
    }

    /// The turn, as the journal names it.
    pub(crate) const fn turn(self) -> &'static str {
        match self {
            Self::Fresh => "main.1.1",
            Self::Resumed | Self::Branching => "main.2.1",
        }
    }

    /// The output of the run.
    pub(crate) const fn result(self) -> &'static str {
        match self {
            Self::Fresh | Self::Resumed => "done\n",
            Self::Branching => "done!\n",
        }
    }

    fn stage(self) -> Stage {
        let start = |tag: &str| format!("model: say {tag}");
        match self {
            Self::Fresh => Stage::prompts(&[("START", WORK)]),
            Self::Resumed => Stage::prompts(&[("START", &start(GOTO)), ("WORK", WORK)]),
            Self::Branching => Stage::prompts(&[
                ("START", &start(CALL)),
                ("WORK", WORK),
                ("BACK", &start("<result>{{result}}!</result>")),
            ]),
        }
    }
}

pub(crate) struct Scene {
    pub(crate) kind: Kind,
    pub(crate) stage: Stage,
}

impl Scene {
    pub(crate) fn new(kind: Kind) -> Self {
        let stage = kind.stage();
        stage.project.write("hold.sh", HOLD);
        Self { kind, stage }
    }

    /// Adds a variable to the environment.
    pub(crate) fn with(self, entry: &str) -> Self {
        Self { stage: self.stage.with(entry), ..self }
    }

    /// Opens all gates, now and later.
    pub(crate) fn open_all_gates(&self) {
        for gate in GATES {
            self.stage.opens(gate);
        }
    }

    /// The events of this name about the turn.
    pub(crate) fn turn_events(&self, event: &str) -> Vec<Value> {
        let all = self.stage.events(event).into_iter();
        all.filter(|event| event["turn"] == self.kind.turn()).collect()
    }

    /// The path of the transcript of the first attempt (`jsonl`), or of the file beside it (`pid`).
    fn path(&self, extension: &str) -> String {
        let turn = self.kind.turn();
        format!(".raymond/runs/{RUN}/transcripts/{turn}.1.{extension}")
    }

    /// The content of such a file.
    pub(crate) fn file(&self, extension: &str) -> String {
        self.stage.project.read(&self.path(extension))
    }

    /// Whether a transcript exists, empty or not.
    pub(crate) fn has_a_transcript(&self) -> bool {
        self.stage.project.path(&self.path("jsonl")).exists()
    }

    /// Whether the transcript has a line of this type with these words.
    pub(crate) fn transcribes(&self, kind: &str, words: &str) -> bool {
        let matches = |line: &str| {
            let entry = serde_json::from_str::<Value>(line);
            entry.is_ok_and(|entry| entry["type"] == kind) && line.contains(words)
        };
        self.file("jsonl").lines().any(matches)
    }

    /// Whether the client has saved the prompt of the turn.
    pub(crate) fn keeps_the_prompt(&self) -> bool {
        let started = self.turn_events("turn_started");
        let Some(plan) = started.first().map(|started| &started["plan"]) else { return false };
        let sessions = [&plan["fresh"], &plan["resume"], &plan["branch"]["to"]];
        let session = sessions.into_iter().find_map(Value::as_str);
        session.is_some_and(|session| self.stage.kept(session, "model: wait first"))
    }

    /// The clients that live.
    pub(crate) fn clients(&self) -> Vec<u32> {
        clients(&self.stage)
    }

    /// How often the tool began and ended.
    pub(crate) fn tool(&self) -> (usize, usize) {
        let log = self.stage.project.read("tool.log");
        let count = |word: &str| log.lines().filter(|line| *line == word).count();
        (count("began"), count("ended"))
    }
}

/// The clients of a stage that live.
pub(crate) fn clients(stage: &Stage) -> Vec<u32> {
    let program = clients::claude();
    let is_client =
        |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    stage.processes().into_iter().map(|(pid, _)| pid).filter(|pid| is_client(*pid)).collect()
}

/// Sends a signal to every client of a stage.
pub(crate) fn signal_clients(stage: &Stage, signal: Signal) {
    for pid in clients(stage) {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        // It may have ended by now.
        kill_process(pid, signal).ok();
    }
}

/// Kills every client of a stage, and waits for their end.
pub(crate) fn kill_clients(stage: &Stage) {
    signal_clients(stage, Signal::KILL);
    until("the clients are gone", || clients(stage).is_empty());
    wait_for_closed_requests(stage);
}

/// Waits until the model has noticed that its clients are gone, because a reply that is written
/// into a connection that has just closed counts as delivered.
pub(crate) fn wait_for_closed_requests(stage: &Stage) {
    let is_open = |seen: &RecordedRequest| seen.outcome == RequestOutcome::Open;
    until("all requests are closed", || !stage.requests().iter().any(is_open));
}
