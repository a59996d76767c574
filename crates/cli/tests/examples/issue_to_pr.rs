//! The changes of `issue-to-pr` to its repository and its tracker.

use crate::stage::{ExampleRun, Stage};

fn go(replies: &str) -> Stage {
    ExampleRun::of("issue-to-pr", replies).go()
}

const PULL: &str = "Greet people by name

`greet.sh` takes a name. Without one it prints what it printed before.

Closes #12.
";

#[test]
fn accepted_change_becomes_one_pull_request() {
    let stage = go("replies.yaml");
    assert_eq!(stage.commits("issue-12"), ["start", "Greet people by name"]);
    assert_eq!(stage.commits("origin/issue-12"), ["start", "Greet people by name"]);
    assert_eq!(stage.commits("main"), ["start"]);
    assert_eq!(stage.read("try/tracker/pulls/issue-12/text"), PULL);
    assert_eq!(stage.prints("git diff --name-only main issue-12"), "greet.sh\ntests/name.sh\n");
    assert_eq!(stage.prints("ls ../tracker/comments"), "");
}

#[test]
fn existing_pull_request_is_not_opened_again() {
    let stage = go("replies.yaml");
    let again = "raymond run ../../workflow --replies ../../replies.yaml --run-id again --quiet";
    // The change is there already, so this time the tests pass at once.
    stage.write(
        "replies.yaml",
        "PLAN: <reset>IMPLEMENT</reset>\nIMPLEMENT: <goto>VERIFY</goto>\nREVIEW: <result>accept</result>\n",
    );
    assert_eq!(stage.prints(again), "updated https://example.org/pull/1\n");
    assert_eq!(stage.commits("issue-12"), ["start", "Greet people by name"]);
    assert_eq!(stage.read("try/tracker/pulls/issue-12/text"), PULL);
}

#[test]
fn rejected_change_is_implemented_again() {
    let stage = go("rejected.yaml");
    let expected = ["start", "Greet people by name", "Greet people by name"];
    assert_eq!(stage.commits("origin/issue-12"), expected);
    assert_eq!(stage.prints("ls ../tracker/pulls"), "issue-12\n");
}

#[test]
fn failing_tests_are_escalated_to_a_person() {
    let stage = go("hopeless.yaml");
    let comment = "This needs a person (run demo):\n\nThe tests fail:\nnot ok tests/nobody.sh\n\n";
    assert_eq!(stage.read("try/tracker/comments/12"), comment);
    assert_eq!(stage.commits("issue-12"), ["start"]);
    assert_eq!(stage.prints("git status --porcelain"), "");
    assert_eq!(stage.prints("git stash list --format=%s"), "On issue-12: unfinished in demo\n");
    assert_eq!(stage.prints("ls ../tracker/pulls"), "");
}

#[test]
fn unclear_issue_is_escalated_with_a_question() {
    let stage = go("unclear.yaml");
    let comment = "This needs a person (run demo):\n\nShould a name be shouted?\n";
    assert_eq!(stage.read("try/tracker/comments/12"), comment);
}

#[test]
fn unreachable_tracker_is_a_failure() {
    let run = ExampleRun::of("issue-to-pr", "replies.yaml");
    let stage = Stage::of("issue-to-pr");
    assert_eq!(stage.prints("rm ../tracker/issues/12"), "");
    let output = stage.start(run).wait();
    assert_eq!((output.code(), output.stdout.as_str()), (0, "nothing to do\n"));
    let stage = Stage::of("issue-to-pr");
    stage.write("try/bin/gh", "echo 'no network' >&2; exit 4\n");
    stage.start(run).wait().mentions(1, &["main failed at 1_START.sh", "no network"]);
}

#[test]
fn missing_question_is_requested_once() {
    let check = |second: &str, expected: &str| {
        let stage = Stage::of("issue-to-pr");
        let plan = format!("PLAN:\n  - <goto>ESCALATE</goto>\n  - {second}\n");
        stage.write("unclear.yaml", &plan);
        let output = stage.start(ExampleRun::of("issue-to-pr", "unclear.yaml")).wait();
        output.mentions(1, &["issue 12 needs a person"]);
        let comment = format!("This needs a person (run demo):\n\n{expected}\n");
        assert_eq!(stage.read("try/tracker/comments/12"), comment);
    };
    let left_out = "A person should decide something, but the question was left out.";
    let asks = "<goto input=\"Should a name be shouted?\">ESCALATE</goto>";
    check(&format!("{{ text: '{asks}', expect: {left_out:?} }}"), "Should a name be shouted?");
    check("<goto>ESCALATE</goto>", left_out);
}

#[test]
fn first_word_of_review_accepts_case_insensitively() {
    for word in ["Accept.", "ACCEPT", "**Accepted**: it is good"] {
        let stage = Stage::of("issue-to-pr");
        let replies = stage.read("replies.yaml");
        let replies = replies.replace("<result>accept<", &format!("'<result>{word}<"));
        stage.write("replies.yaml", &replies.replace("</result>,", "</result>',"));
        let output = stage.start(ExampleRun::of("issue-to-pr", "replies.yaml")).wait();
        output.prints("opened https://example.org/pull/1\n");
    }
}

#[test]
fn reviewer_and_implementer_are_different_models() {
    let stage = Stage::of("issue-to-pr");
    let model = |state: &str| {
        let prompt = stage.read(&format!("workflow/{state}.md"));
        prompt.lines().find_map(|line| line.strip_prefix("model: ")).unwrap().to_owned()
    };
    assert_ne!(model("IMPLEMENT"), model("REVIEW"));
}
