//! The examples that are documents of steps: what they leave, whoever answers their questions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stage::{Stage, Way};

/// What the steps of a run left, by key.
fn left_by_driver(stage: &Stage) -> BTreeMap<String, Value> {
    let events = stage.events();
    let done = events.iter().filter_map(|event| event["stepped"]["fact"].get("done"));
    let left = done.map(|done| {
        let value = done["stored"]["value"].as_str().unwrap();
        (done["key"].as_str().unwrap().to_owned(), serde_json::from_str(value).unwrap())
    });
    left.collect()
}

/// An example, done by the driver.
fn driven(example: &str) -> (Stage, BTreeMap<String, Value>) {
    let stage = Way::of(example, "replies.yaml").go();
    let left = left_by_driver(&stage);
    (stage, left)
}

/// The keys of what failed.
fn failed(left: &BTreeMap<String, Value>) -> Vec<&str> {
    left.iter().filter(|(_, result)| result["ok"] == false).map(|(key, _)| key.as_str()).collect()
}

#[test]
fn the_minimal_document_leaves_three_results() {
    let (_, left) = driven("crayfish-minimal");
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
fn the_digest_has_every_story_with_what_was_said_of_it() {
    let (stage, _) = driven("daily-digest");
    assert_eq!(stage.read("try/digest-2026-03-02.md"), DIGEST);
}

#[test]
fn a_day_without_news_asks_nobody() {
    let stage = Stage::of("daily-digest");
    stage.write("replies.yaml", "{}\n");
    stage.write("try/feeds/builds.jsonl", "");
    stage.write("try/feeds/support.jsonl", "");
    let output = stage.start(Way::of("daily-digest", "replies.yaml")).wait();
    assert_eq!(output.code(), 0, "{}", output.stderr);
    assert_eq!(stage.read("try/digest-2026-03-02.md"), "Nothing happened.\n");
}

#[test]
fn what_turned_the_tests_green_is_committed() {
    let (stage, left) = driven("repair-loop");
    assert_eq!(stage.commits("main"), ["start", "Mend roman.sh"]);
    assert_eq!(stage.prints("bash test.sh; git status --porcelain; git stash list"), "");
    let rounds: Vec<&Value> =
        (0..3).map(|n| &left[&format!("rounds[{n}].test")]["json"]["ok"]).collect();
    assert_eq!(rounds, [false, false, true]);
}

#[test]
fn what_did_not_is_put_into_the_stash() {
    let stage = Way::of("repair-loop", "hopeless.yaml").go();
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
fn what_is_harmless_is_upgraded_and_what_fails_is_collected() {
    let (stage, left) = driven("upgrade-dependencies");
    assert_eq!(stage.read("try/report.md"), REPORT);
    let expected = json!({ "colors": "1.2.3", "dates": "4.0.1", "http": "2.8.0", "yaml": "0.9.4" });
    let found: Value = serde_json::from_str(&stage.read("try/dependencies.json")).unwrap();
    assert_eq!(found, expected);
    assert_eq!(failed(&left), ["packages[3].notes"]);
}
