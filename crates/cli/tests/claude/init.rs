//! The workflow of `raymond init` with a client: its prompts and its permissions.

use std::fs;

use crate::stage::Stage;

/// The `fake:` lines by which START hands its work to REVIEW.
const TASK: &str =
    "fake: say <goto input=\"fake: say &lt;result&gt;accept: fine&lt;/result&gt;\">CHECK</goto>";

#[test]
fn generated_workflow_allows_the_commands_of_the_project() {
    let stage = Stage::of(&[("Makefile", "test:\n\ttrue\nlint:\n\ttrue\n"), (".git/HEAD", "")]);
    stage.raymond("init").mentions(0, &[]);
    let words = ["run", "workflows/change", "--run-id", "r", "--input", TASK];
    let output = stage.start_words(&words).wait();
    output.prints("done: fine\n").mentions(0, &["CHECK.sh → REVIEW.md (function)"]);
    assert!(!output.stderr.contains("warning"), "{output:?}");

    let [start, review] = stage.invocations().try_into().unwrap();
    let git = ["Bash(git status:*)", "Bash(git diff:*)", "Bash(git log:*)"];
    let allowed = [["Bash(make test:*)", "Bash(make lint:*)"].as_slice(), &git].concat();
    assert_eq!(start.values("--allowedTools"), allowed);
    assert_eq!(start.values("--disallowedTools"), [""; 0]);
    assert_eq!(start.values("--permission-mode"), ["acceptEdits"]);
    assert_eq!(start.stdin, Some(prompt(&stage, "START").replace("{{input}}", TASK)));

    let verdict = "fake: say <result>accept: fine</result>";
    assert_eq!(review.values("--allowedTools"), git);
    assert_eq!(review.values("--disallowedTools"), ["Edit", "Write", "NotebookEdit"]);
    assert_eq!(review.stdin, Some(prompt(&stage, "REVIEW").replace("{{input}}", verdict)));
    assert_ne!(review.values("--session-id"), start.values("--session-id"), "fresh eyes");
}

/// The body of a state that was written.
fn prompt(stage: &Stage, state: &str) -> String {
    let path = stage.project.path(&format!("workflows/change/{state}.md"));
    let text = fs::read_to_string(path).unwrap();
    let (_, body) = text.split_once("\n---\n").unwrap();
    body.to_owned()
}
