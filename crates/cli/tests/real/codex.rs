//! The real Codex: its conversations with the model, costs, failures and crashes.
//!
//! The client chooses the ids of its threads, so the id in a plan never exists. The tests use the
//! thread id of the client's requests.

mod contexts;
pub(crate) mod contract;
mod crashes;
mod failures;
mod money;
mod quota;

use std::collections::BTreeMap;

use raymond_testkit::model::{RecordedRequest, Role};
use serde_json::Value;

use crate::harness::Output;
use crate::shown;
use crate::stage::Stage;

/// A call of a tool that does nothing, as a `model:` line.
const TOOL: &str = "model: tool exec_command {\"cmd\": \"true\"}";

/// Runs the workflow with Codex, one turn at a time.
fn run(stage: &Stage, flags: &str) -> Output {
    stage.run(&format!("--backend codex --max-parallel 1 {flags}"))
}

/// The thread of a request.
fn thread(seen: &RecordedRequest) -> &str {
    seen.header("thread-id").unwrap()
}

/// The first request of every turn.
fn openings(stage: &Stage) -> Vec<RecordedRequest> {
    let opens = |seen: &RecordedRequest| {
        seen.conversation.last().is_some_and(|said| said.role == Role::User)
    };
    let mut requests = stage.requests();
    requests.retain(opens);
    // The client may try a request again.
    requests.dedup_by(|a, b| thread(a) == thread(b) && a.conversation == b.conversation);
    requests
}

/// One line per turn, as [`shown::turn_contexts`] has it: `new A | START`, `resume A | …`, `branch
/// A to B | …`.
///
/// The plan names the session to open or to resume; the request of the client names the thread.
#[track_caller]
fn turn_contexts(stage: &Stage) -> Vec<String> {
    let started = stage.events("turn_started");
    let openings = openings(stage);
    assert_eq!(started.len(), openings.len(), "turns and what they asked first: {started:#?}");
    let mut letters = BTreeMap::new();
    let line = |(started, seen): (&Value, &RecordedRequest)| {
        let mut letter = |thread: &str| {
            let next = char::from(b'A' + u8::try_from(letters.len()).unwrap());
            *letters.entry(thread.to_owned()).or_insert(next)
        };
        let (kind, place) = started["plan"].as_object().unwrap().iter().next().unwrap();
        let id = |value: &Value| value.as_str().unwrap().to_owned();
        let plan = match kind.as_str() {
            "fresh" => format!("new {}", letter(thread(seen))),
            "resume" => {
                assert_eq!(
                    id(place),
                    thread(seen),
                    "the request is in another thread than planned"
                );
                format!("resume {}", letter(thread(seen)))
            }
            "branch" => {
                let from = letter(&id(&place["from"]));
                format!("branch {from} to {}", letter(thread(seen)))
            }
            "continue" => {
                assert_eq!(id(&place["session"]), thread(seen), "a second thread was opened");
                format!("continue {}", letter(thread(seen)))
            }
            other => panic!("no such plan: {other}"),
        };
        format!("{plan} | {}", shown::conversation(&seen.conversation))
    };
    started.iter().zip(&openings).map(line).collect()
}

/// The failures of turns, as the journal has them.
fn failures(stage: &Stage) -> Vec<Value> {
    stage.events("turn_failed").into_iter().map(|mut failed| failed["failure"].take()).collect()
}
