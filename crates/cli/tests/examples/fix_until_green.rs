//! The changes of `fix-until-green` to its repository.

use crate::stage::{ExampleRun, Stage};

const CODE: &str = r#"shout() { printf '%s\n' "${1^^}"; }
slug() { local text=${1,,}; printf '%s\n' "${text// /-}"; }
shorten() { if ((${#1} <= $2)); then echo "$1"; else echo "${1:0:$2 - 1}…"; fi; }
"#;

fn go(replies: &str) -> Stage {
    ExampleRun::of("fix-until-green", replies).go()
}

/// Checks that only commits and stashes are left.
#[track_caller]
fn is_clean(stage: &Stage) {
    assert_eq!(stage.prints("git status --porcelain"), "");
}

/// The entries of the stash, the last first. The same edits within a second are one entry.
#[track_caller]
fn stashes(stage: &Stage) -> Vec<String> {
    let list = stage.prints("git stash list --format=%s");
    let mut stashes: Vec<String> = list.lines().map(str::to_owned).collect();
    stashes.dedup();
    stashes
}

#[test]
fn each_fixed_test_is_a_commit() {
    let stage = go("replies.yaml");
    assert_eq!(stage.commits("main"), ["start", "fix: slug", "fix: shorten"]);
    assert_eq!(stage.read("try/text.sh"), CODE);
    is_clean(&stage);
    assert!(stage.run("./test.sh").code() == 0);
    assert!(stage.prints("git checkout -q HEAD~ && ! ./test.sh").contains("ok slug\n"));
}

#[test]
fn edits_of_tests_are_never_committed() {
    let stage = go("cheating.yaml");
    assert_eq!(stage.commits("main"), ["start", "fix: shorten, slug"]);
    assert_eq!(stage.prints("git diff --name-only HEAD~"), "text.sh\n");
    assert_eq!(stage.prints("ls tests"), "shorten\nshout\nslug\n");
    is_clean(&stage);
}

#[test]
fn third_equal_failure_restarts_from_last_commit() {
    let stage = go("stuck.yaml");
    assert_eq!(stage.commits("main"), ["start", "fix: shorten, slug"]);
    assert_eq!(stashes(&stage), ["On main: dead end of demo"]);
    assert_eq!(stage.prints("git show stash@{0}^3:guess.sh"), "second\n");
    assert!(!stage.has("try/guess.sh"));
    is_clean(&stage);
    let events = stage.events();
    let plans = events.iter().filter_map(|event| event.get("turn_started")?["plan"].as_object());
    let kinds: Vec<_> = plans.flat_map(|plan| plan.keys()).collect();
    assert_eq!(kinds, ["fresh", "resume", "fresh"]);
}

#[test]
fn endless_fix_stops_and_keeps_green_steps() {
    let stage = go("hopeless.yaml");
    assert_eq!(stage.commits("main"), ["start", "fix: slug"]);
    let expected = ["On main: unfinished in demo", "On main: dead end of demo"];
    assert_eq!(stashes(&stage), expected);
    is_clean(&stage);
}

#[test]
fn uncommitted_changes_are_left_alone() {
    let stage = Stage::of("fix-until-green");
    stage.write("try/text.sh", "mine");
    let output = stage.start(ExampleRun::of("fix-until-green", "replies.yaml")).wait();
    output.mentions(1, &["commit or stash your own changes first"]);
    assert_eq!((stage.commits("main").len(), stage.read("try/text.sh").as_str()), (1, "mine"));
}
