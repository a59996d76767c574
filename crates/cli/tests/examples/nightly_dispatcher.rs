//! The results of `nightly-dispatcher` after a night.

use serde_json::Value;

use crate::stage::{ExampleRun, Stage};

#[test]
fn every_issue_gets_a_worker_and_worktree() {
    let stage = ExampleRun::of("nightly-dispatcher", "replies.yaml").go();
    assert_eq!(stage.commits("night-12"), ["start", "Say goodbye (#12)"]);
    assert_eq!(stage.commits("night-15"), ["start"]);
    assert_eq!(stage.commits("main"), ["start"]);
    let left = stage.prints("git -C .work/demo/trees/15 status --porcelain");
    assert_eq!(left, "?? tests/night.sh\n");
    let results = stage.results();
    let agents: Vec<&String> = results.as_object().unwrap().keys().collect();
    assert_eq!(agents, ["main", "main_work1", "main_work2"]);
    assert_eq!(results["main_work1"], "night-12 is ready");
    let second = results["main_work2"].as_str().unwrap();
    assert!(second.starts_with("night-15 is not ready: look at "), "{second}");
}

#[test]
fn issues_with_a_branch_are_not_started_again() {
    let stage = ExampleRun::of("nightly-dispatcher", "replies.yaml").go();
    let run = "raymond run ../../workflow --replies ../../replies.yaml --run-id next --var looks=1";
    assert_eq!(stage.prints(&format!("{run} --quiet")), "looks: 1, issues: none\n");
    let next: Value = stage.run("raymond status next --json").json();
    assert_eq!(next["ended"], 1);
}

#[test]
fn unreachable_tracker_is_asked_again() {
    let stage = Stage::of("nightly-dispatcher");
    stage.prints("mv ../bin/gh ../bin/real");
    // Each call is refused the first time.
    let refusing = r#"#!/usr/bin/env bash
if mkdir "$0-$2-$3" 2> /dev/null; then echo 'no network' >&2; exit 4; fi
exec "${0%gh}real" "$@"
"#;
    stage.program("try/bin/gh", refusing);
    let run = "raymond run ../../workflow --replies ../../replies.yaml --run-id demo --quiet";
    let found = stage.prints(&format!("{run} --var looks=6 --var every=1s"));
    assert_eq!(found, "looks: 6, issues: 12 15\n");
    assert_eq!(stage.commits("night-12"), ["start", "Say goodbye (#12)"]);
    assert_eq!(stage.results().as_object().unwrap().len(), 3);
}
