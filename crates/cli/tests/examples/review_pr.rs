//! What `review-pr` says about its pull request.

use crate::stage::{Stage, Way};

const COMMENT: &str = r#"## Review (run demo)

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
fn only_findings_with_a_real_line_are_told_and_only_failing_tests_prove_them() {
    let stage = Way::of("review-pr", "replies.yaml").go();
    assert_eq!(stage.read("try/comments/7"), COMMENT);
    let dropped = stage.prints("cat .work/demo/dropped/*");
    let expected = "cart.sh: echo \"$((100 / $2))\"\n../../../bin/gh: set -euo pipefail\n";
    assert_eq!(dropped, expected);
    assert_eq!(stage.prints("git status --porcelain"), "");
    assert_eq!(stage.commits("pr-7"), ["start", "discounts"]);
}

#[test]
fn one_reviewer_goes_on_and_the_others_end() {
    let stage = Way::of("review-pr", "replies.yaml").go();
    let results = stage.results();
    let reviewers = ["main_review1", "main_review2", "main_review3"];
    let last = reviewers.map(|agent| results[agent] == "commented on pull request 7");
    assert_eq!(last.into_iter().filter(|is_last| *is_last).count(), 1, "{results}");
}

#[test]
fn a_review_without_findings_says_so() {
    let stage = Way::of("review-pr", "clean.yaml").go();
    let expected = "## Review (run demo)

No bug was proven.

Dropped because the quoted line does not exist: 0
";
    assert_eq!(stage.read("try/comments/7"), expected);
}

#[test]
fn a_review_needs_the_number_of_a_pull_request() {
    let stage = Stage::of("review-pr");
    let run = "raymond run ../../workflow --replies ../../clean.yaml --input main";
    stage.run(run).mentions(1, &["which pull request? start with --input NUMBER"]);
    assert!(!stage.has("try/comments/7"));
}
