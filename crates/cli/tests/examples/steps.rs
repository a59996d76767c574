//! The examples that are documents of steps, and their results. `replies.yaml` answers the driver,
//! `outputs.json` answers the tool, by key and attempt.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::stage::{ExampleRun, Stage};

/// The results of steps, by key.
type Left = BTreeMap<String, Value>;

/// The place of the state between two calls of the tool.
#[derive(Debug, Clone, Copy)]
enum Memory {
    /// A run, under its id.
    Run,
    /// The caller, which sends the last reply back.
    Caller,
}

/// Runs an example in every way. All of them leave the same results, which `look` checks.
#[track_caller]
fn everywhere(example: &str, look: impl Fn(&Stage)) -> Left {
    let stage = ExampleRun::of(example, "replies.yaml").go();
    look(&stage);
    let driven = left_by_driver(&stage);
    for memory in [Memory::Run, Memory::Caller] {
        let (stage, mut called) = called(example, memory);
        look(&stage);
        // In a loop, the latest result is also listed under the id.
        called.retain(|key, _| driven.contains_key(key));
        assert_eq!(called, driven, "{memory:?}");
    }
    driven
}

fn left_by_driver(stage: &Stage) -> Left {
    let events = stage.events();
    let done = events.iter().filter_map(|event| event["stepped"]["event"].get("done"));
    let left = done.map(|done| {
        let value = done["stored"]["value"].as_str().unwrap();
        (done["key"].as_str().unwrap().to_owned(), serde_json::from_str(value).unwrap())
    });
    left.collect()
}

/// Calls the tool until it asks nothing more, and checks that every answer was requested once.
#[track_caller]
fn called(example: &str, memory: Memory) -> (Stage, Left) {
    let stage = Stage::of(example);
    let read = |name: &str| serde_json::from_str::<Value>(&stage.read(name)).unwrap();
    let (workflow, mut outputs) = (read("flow.json"), read("outputs.json"));
    let mut request = json!({ "action": "run", "workflow": workflow });
    loop {
        if let Memory::Run = memory {
            request["runId"] = json!("demo");
        }
        let reply = call(&stage, &request);
        assert_eq!(reply["ok"], true, "{reply:#}");
        if reply["status"] == "done" {
            assert_eq!(outputs, json!({}), "answers that were not requested");
            let results = reply["results"].as_object().unwrap().clone();
            return (stage, results.into_iter().collect());
        }
        request["agentOutputs"] = answers(&reply, outputs.as_object_mut().unwrap());
        if let Memory::Caller = memory {
            request["results"] = reply["results"].clone();
            request["attempts"] = reply["attempts"].clone();
        }
    }
}

#[track_caller]
fn call(stage: &Stage, request: &Value) -> Value {
    stage.write("call.json", &request.to_string());
    let call = stage.path("call.json");
    let reply = stage.prints(&format!("raymond crayfish --quiet < {}", call.display()));
    serde_json::from_str(&reply).unwrap()
}

/// One answer for each request of a reply, by its id.
fn answers(reply: &Value, outputs: &mut Map<String, Value>) -> Value {
    let requests = reply["requests"].as_array().unwrap().iter();
    let answered = requests.map(|request| {
        let name = format!("{}:{}", request["key"].as_str().unwrap(), request["attempt"]);
        let output = outputs.remove(&name).unwrap_or_else(|| panic!("no answer to {request:#}"));
        (request["requestId"].as_str().unwrap().to_owned(), output)
    });
    answered.collect::<Map<_, _>>().into()
}

#[test]
fn the_minimal_document_leaves_three_results() {
    let left = everywhere("crayfish-minimal", |_| ());
    let said = |text: &str| json!({ "ok": true, "mode": "none", "stdout": text, "stderr": "", "attempts": 1 });
    let expected = [
        ("a", said("pre\n")),
        ("b", said("post\n")),
        ("v", json!({ "ok": true, "json": { "foo": "bar" } })),
    ];
    assert_eq!(left, expected.map(|(key, value)| (key.to_owned(), value)).into());
}

const DIGEST: &str = "# Digest of 2026-03-02

## Runners are out of space

Two nightly builds failed because a disk is full. [b2, b3]

## Exports of invoices are broken (?)

One item reports a fault, the other one only asks. [s1, s2]
";

#[test]
fn digest_has_every_story() {
    everywhere("daily-digest", |stage| {
        assert_eq!(stage.read("try/digest-2026-03-02.md"), DIGEST);
    });
}

#[test]
fn day_without_news_asks_no_agent() {
    let stage = Stage::of("daily-digest");
    stage.write("replies.yaml", "{}\n");
    stage.write("try/feeds/builds.jsonl", "");
    stage.write("try/feeds/support.jsonl", "");
    let output = stage.start(ExampleRun::of("daily-digest", "replies.yaml")).wait();
    assert_eq!(output.code(), 0, "{}", output.stderr);
    assert_eq!(stage.read("try/digest-2026-03-02.md"), "Nothing happened.\n");
}

#[test]
fn successful_fix_is_committed() {
    let left = everywhere("repair-loop", |stage| {
        assert_eq!(stage.commits("main"), ["start", "Mend roman.sh"]);
        assert_eq!(stage.prints("bash test.sh; git status --porcelain; git stash list"), "");
    });
    let rounds: Vec<&Value> =
        (0..3).map(|n| &left[&format!("rounds[{n}].test")]["json"]["ok"]).collect();
    assert_eq!(rounds, [false, false, true]);
}

#[test]
fn failed_fix_is_stashed() {
    let stage = ExampleRun::of("repair-loop", "hopeless.yaml").go();
    assert_eq!(stage.commits("main"), ["start"]);
    let stash = "stash@{0}: On main: roman.sh is still broken\n";
    assert_eq!(stage.prints("git status --porcelain; git stash list"), stash);
}

const REPORT: &str = "- colors 1.2.0 → 1.2.3: upgraded
- dates 4.0.1 → 4.1.0: put back: the tests fail
- http 2.8.0 → 3.0.0: held back: The API is another one.
- yaml 0.9.4 → 0.9.5: not assessed
";

#[test]
fn harmless_upgrades_pass_and_failures_are_collected() {
    let left = everywhere("upgrade-dependencies", |stage| {
        assert_eq!(stage.read("try/report.md"), REPORT);
        let found: Value = serde_json::from_str(&stage.read("try/dependencies.json")).unwrap();
        let expected =
            json!({ "colors": "1.2.3", "dates": "4.0.1", "http": "2.8.0", "yaml": "0.9.4" });
        assert_eq!(found, expected);
    });
    let failed = left.iter().filter(|(_, result)| result["ok"] == false);
    assert_eq!(failed.map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["packages[3].notes"]);
}
