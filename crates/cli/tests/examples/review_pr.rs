//! The review that `review-pr` writes.

use std::fmt::Write as _;

use serde_json::json;

use crate::stage::{ExampleRun, Stage};

pub(crate) const COMMENT: &str = r#"## Review (run demo)

**discount 250 10 prints 180, not 225: it divides before it multiplies**

> cart.sh: echo "$(($1 / 100 * (100 - $2)))"

This test fails:

```sh
. ./cart.sh
[ "$(discount 250 10)" = 225 ]
```

Not proven: total prints nothing for an empty cart (cart.sh)

Dropped because the quoted line does not exist: 2
"#;

#[test]
fn only_proved_findings_are_reported() {
    let stage = ExampleRun::of("review-pr", "replies.yaml").go();
    assert_eq!(stage.read("try/comments/7"), COMMENT);
    let dropped = stage.prints("cat .work/demo/dropped/*");
    let expected = "cart.sh: echo \"$((100 / $2))\"\n../../../../bin/gh: set -euo pipefail\n";
    assert_eq!(dropped, expected);
    assert_eq!(stage.prints("git status --porcelain"), "");
    assert_eq!(stage.commits("pr-7"), ["start", "discounts"]);
}

#[test]
fn main_continues_after_all_reviewers() {
    let stage = ExampleRun::of("review-pr", "replies.yaml").go();
    let expected = json!({
        "main": "commented on pull request 7",
        "main_review1": "reviewed: wrong results",
        "main_review2": "reviewed: errors and edge cases",
        "main_review3": "reviewed: what callers rely on",
    });
    assert_eq!(stage.results(), expected);
}

#[test]
fn review_without_findings_is_reported() {
    let stage = ExampleRun::of("review-pr", "clean.yaml").go();
    let expected = "## Review (run demo)

No bug was proven.

Dropped because the quoted line does not exist: 0
";
    assert_eq!(stage.read("try/comments/7"), expected);
}

#[test]
fn review_needs_a_pull_request_number() {
    let stage = Stage::of("review-pr");
    let run = "raymond run ../../workflow --replies ../../clean.yaml --input main";
    stage.run(run).mentions(1, &["which pull request? start with --input NUMBER"]);
    assert!(!stage.has("try/comments/7"));
}

#[test]
fn checkout_of_the_user_is_left_alone() {
    let stage = Stage::of("review-pr");
    stage.write("try/project/cart.sh", "mine\n");
    stage.write("try/project/new.txt", "mine\n");
    assert_eq!(stage.start(ExampleRun::of("review-pr", "replies.yaml")).wait().code(), 0);
    assert_eq!(stage.read("try/comments/7"), COMMENT);
    let expected = "main\n M cart.sh\n?? new.txt\n";
    assert_eq!(stage.prints("git branch --show-current && git status --porcelain"), expected);
    assert_eq!(stage.read("try/project/cart.sh"), "mine\n");
    assert_eq!(stage.prints("git worktree list | wc -l").trim(), "1");
}

/// Each reviewer finds four bugs: the worst of each are tried first, and two are left.
#[test]
fn untested_findings_are_listed_worst_first() {
    let stage = Stage::of("review-pr");
    let lines: Vec<String> = (0..12).map(|number| format!("# line {number}")).collect();
    let text = lines.join("\\n");
    stage.prints(&format!(
        "git switch -q pr-7 && printf '{text}\\n' >> cart.sh && git commit -qam more && git switch -q main"
    ));
    let finding =
        |number: usize| format!("file: cart.sh\\nline: # line {number}\\nbug: bug {number}\\n");
    let mut replies = String::from("PROVE: <goto>PROOF</goto>\nagents:\n");
    for reviewer in 0..3 {
        let findings: String = (0..4).map(|at| finding(reviewer * 4 + at)).collect();
        let agent = format!("  main_review{}:\n", reviewer + 1);
        writeln!(replies, "{agent}    REVIEW: \"<result>\\n{findings}</result>\"").unwrap();
    }
    stage.write("replies.yaml", &replies);
    assert_eq!(stage.start(ExampleRun::of("review-pr", "replies.yaml")).wait().code(), 0);
    let tried = [0, 4, 8, 1, 5, 9, 2, 6, 10, 3];
    let tried: String =
        tried.map(|number| format!("\nNot proven: bug {number} (cart.sh)\n")).concat();
    let expected = format!(
        "## Review (run demo)\n\nNo bug was proven.\n{tried}\nNot tried: 2\n\n- bug 7 (cart.sh)\n\
         - bug 11 (cart.sh)\n\nDropped because the quoted line does not exist: 0\n"
    );
    assert_eq!(stage.read("try/comments/7"), expected);
}
