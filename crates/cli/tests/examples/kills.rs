//! kill -9 at the worst moment of an example, right after an effect and before it is recorded: the
//! effect is not repeated, and nothing is lost.
//!
//! A hook of git, or the stand-in for `gh`, blocks at this moment.

use rustix::process::Signal;

use crate::harness::{Output, until};
use crate::review_pr::COMMENT;
use crate::stage::{ExampleRun, Stage};

/// A program that runs `before`, and then waits for ever, the first time.
fn holding(stage: &Stage, before: &str) -> String {
    let held = stage.path("held");
    let held = held.display();
    format!(
        "#!/usr/bin/env bash\n{before}\nif mkdir {held} 2> /dev/null; then while true; do sleep 0.01; done; fi\n"
    )
}

/// Lets `gh` work, but blocks the first of these calls before it returns.
fn hold_after(stage: &Stage, call: &str) {
    stage.prints("mv ../bin/gh ../bin/real");
    let before = format!("\"${{0%gh}}real\" \"$@\"; [ \"$1 $2\" = '{call}' ] || exit 0");
    stage.program("try/bin/gh", &holding(stage, &before));
}

/// Starts an example, kills its owner where it is held, and resumes the run.
#[track_caller]
fn killed_and_resumed(stage: &Stage, run: &ExampleRun) -> Output {
    let running = stage.start(run);
    until("the moment has come", || stage.has("held"));
    running.signal(Signal::KILL);
    running.wait();
    let output = stage.run("raymond resume demo");
    output.mentions(run.expected.exit_code(), &["repeating 1"]);
    output
}

#[test]
fn a_step_is_committed_once() {
    let stage = Stage::of("fix-until-green");
    stage.program("try/.git/hooks/post-commit", &holding(&stage, ""));
    let output = killed_and_resumed(&stage, ExampleRun::of("fix-until-green", "replies.yaml"));
    assert_eq!(output.stdout, "green, commits: 2\n");
    assert_eq!(stage.commits("main"), ["start", "fix: slug", "fix: shorten"]);
}

#[test]
fn a_pull_request_is_opened_once() {
    let stage = Stage::of("issue-to-pr");
    hold_after(&stage, "pr create");
    let output = killed_and_resumed(&stage, ExampleRun::of("issue-to-pr", "replies.yaml"));
    assert_eq!(output.stdout, "updated https://example.org/pull/1\n");
    assert_eq!(stage.commits("origin/issue-12"), ["start", "Greet people by name"]);
    let pull = stage.read("try/tracker/pulls/issue-12/text");
    assert!(pull.ends_with("Closes #12.\n"), "{pull}");
}

#[test]
fn a_person_is_asked_once() {
    let stage = Stage::of("issue-to-pr");
    hold_after(&stage, "issue comment");
    let run = ExampleRun::of("issue-to-pr", "unclear.yaml");
    run.expected.check(&killed_and_resumed(&stage, run));
    let comment = "This needs a person (run demo):\n\nShould a name be shouted?\n";
    assert_eq!(stage.read("try/tracker/comments/12"), comment);
}

#[test]
fn a_pull_request_is_commented_on_once() {
    let stage = Stage::of("review-pr");
    hold_after(&stage, "pr comment");
    killed_and_resumed(&stage, ExampleRun::of("review-pr", "replies.yaml"));
    assert_eq!(stage.read("try/comments/7"), COMMENT);
    assert_eq!(stage.prints("git worktree list | wc -l").trim(), "1");
}

/// The run is killed when the worktree has just been checked out. It is created again, and no work
/// is lost.
#[test]
fn half_made_worktree_is_made_again() {
    let stage = Stage::of("review-pr");
    hold_after(&stage, "pr checkout");
    killed_and_resumed(&stage, ExampleRun::of("review-pr", "replies.yaml"));
    assert_eq!(stage.read("try/comments/7"), COMMENT);
}

#[test]
fn issue_survives_a_kill_before_its_fork() {
    let stage = Stage::of("nightly-dispatcher");
    stage.program("try/project/.git/hooks/post-checkout", &holding(&stage, ""));
    let output = killed_and_resumed(&stage, ExampleRun::of("nightly-dispatcher", "replies.yaml"));
    assert_eq!(output.stdout, "looks: 3, issues: 12 15\n");
    assert_eq!(stage.commits("night-12"), ["start", "Say goodbye (#12)"]);
    let results = stage.results();
    let agents: Vec<&String> = results.as_object().unwrap().keys().collect();
    assert_eq!(agents, ["main", "main_work1", "main_work2"]);
}

#[test]
fn package_is_committed_once() {
    let stage = Stage::of("migrate-batch");
    stage.program("try/.git/hooks/post-commit", &holding(&stage, ""));
    let running = stage.start(ExampleRun::of("migrate-batch", "replies.yaml"));
    until("the moment has come", || stage.has("held"));
    running.signal(Signal::KILL);
    running.wait();
    assert_eq!(stage.run("raymond resume demo").code(), 0);
    let mut commits = stage.commits("main");
    commits.sort();
    assert_eq!(commits, ["migrate packages/billing", "migrate packages/mail", "start"]);
    assert!(stage.read("try/.work/demo/report").starts_with("2 of 3 migrated\n"));
}
