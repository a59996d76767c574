//! `--json`: one value of a known version, whose every field is documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Project, until};

fn project() -> Project {
    let project = Project::of(&[
        ("wf/START.md", "go"),
        ("bad/START.sh", "exit 1"),
        ("slow/START.sh", "touch \"began-$RAYMOND_RUN_ID\"; exec sleep 1000"),
        ("LOOP.md", "again"),
        ("r.yaml", "START: \"<result>one\\ntwo</result>\"\nLOOP: <result>three</result>\n"),
    ]);
    project.raymond("run wf --replies r.yaml --run-id done -q").mentions(0, &[]);
    project
}

/// Starts a run that does not end, in the background.
fn held(project: &Project, run: &str) -> Value {
    let begun = project.raymond(&format!("run slow --run-id {run} -d --json"));
    until("it runs", || project.path(&format!("began-{run}")).exists());
    begun.json()
}

/// The output of every command that has `--json`.
fn all(project: &Project) -> Vec<(&'static str, Value)> {
    let words = [
        "run wf --replies r.yaml --run-id again",
        "run bad --run-id failed",
        "ralph LOOP.md --replies r.yaml --run-id loop",
        "resume done",
        "resume failed --plan",
        "attach done",
        "status",
        "status loop",
        "wait done",
        "show done",
        "why done",
        "list",
        "logs done",
        "cost",
        "cost done --by model",
        "config",
        "doctor",
        "init --list",
        "init",
        "init made --from title",
        "prune --dry-run",
    ];
    let run = |words: &&'static str| (*words, project.raymond(&format!("{words} --json")).json());
    let mut all: Vec<(&str, Value)> = words.iter().map(run).collect();
    all.push(("run -d", held(project, "one")));
    all.push(("stop", project.raymond("stop one --json").json()));
    fs::remove_file(project.path("began-one")).unwrap();
    all.push(("resume -d", project.raymond("resume one -d --json").json()));
    until("it runs again", || project.path("began-one").exists());
    all.push(("cancel", project.raymond("cancel one --json").json()));
    all
}

#[test]
fn json_has_version_and_only_documented_fields() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = fs::read_to_string(page).unwrap();
    let named: BTreeSet<&str> =
        page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for (words, value) in all(&project()) {
        let objects = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        assert!(!objects.is_empty(), "{words}");
        for object in objects {
            assert_eq!(object["version"], json!(1), "{words}: {object:#}");
            let unknown = object.as_object().unwrap().keys();
            let unknown: Vec<_> = unknown.filter(|key| !named.contains(key.as_str())).collect();
            assert_eq!(unknown, [""; 0], "{words}");
        }
    }
}

#[test]
fn every_command_prints_the_same_run_object() {
    let project = project();
    held(&project, "one");
    held(&project, "two");
    let expected: Vec<String> =
        project.raymond("status done --json").json().as_object().unwrap().keys().cloned().collect();
    let check = |words: &str, status: &str| {
        let value = project.raymond(words).json();
        assert_eq!(value["status"], json!(status), "{words}");
        let keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, expected, "{words}");
    };
    check("resume done --json", "completed");
    check("wait done --json", "completed");
    check("attach done --json", "completed");
    check("stop one --json", "stopped");
    check("cancel two --json", "cancelled");
}

#[test]
fn error_leaves_stdout_empty() {
    let project = project();
    for words in ["stop done", "cancel done", "status nope", "run nope", "resume nope", "why nope"]
    {
        project.raymond(&format!("{words} --json")).prints("").mentions(2, &["raymond: "]);
    }
}

#[test]
fn result_is_printed_by_later_commands() {
    let project = project();
    project
        .raymond("wait done")
        .prints("one\ntwo\n")
        .says(0, "done: completed: main ended with a result");
    let results = json!({ "main": "one\ntwo" });
    for words in ["wait done", "status done", "show done"] {
        let value = project.raymond(&format!("{words} --json")).json();
        assert_eq!(value["results"], results, "{words}");
    }
    let status = project.raymond("status done").stdout;
    assert!(status.ends_with("\n  main             returned one …\n"), "{status}");
    let shown = project.raymond("show done --verbose").stdout;
    assert!(shown.ends_with("\nresult of main:\none\ntwo\n"), "{shown}");
    project.raymond("run bad --run-id failed -q").mentions(1, &[]);
    project.raymond("wait failed").prints("").mentions(1, &["failed: failed: "]);
}
