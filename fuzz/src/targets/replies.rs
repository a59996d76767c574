//! Files of replies: every mistake has a place inside the text.

use raymond_backends::scripted::Replies;

use super::frontmatter::check_places;
use crate::Target;

/// The replies of the scripted backend.
pub const TARGET: Target = Target {
    name: "replies",
    inputs: 3_000,
    words: &[
        "START: ",
        "\"*\": ",
        "1: ",
        "agents:\n",
        "defaults: { cost: 0.01 }\n",
        "text: ",
        "cost: ",
        "delay: 100ms",
        "expect: ",
        "attempts: [",
        "fail: transient",
        "fail: { kind: quota, message: m, for: 15m }",
        "hang: true",
        "write: { a.txt: text, b: null }",
        "cap: true",
        "denied: [",
        "\"<goto>A</goto>\"",
        "- ",
        "  ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "&a ",
        "*a",
        "<<: *a",
        "!!str ",
        "? ",
        "|\n",
        ">-\n",
        "null",
        "~",
        ".nan",
        "1e400",
        "START.md: ",
        "../x: y",
        "earlier: [a]",
        "kind: auth",
        "at: 2030-01-01T00:00:00Z",
    ],
    memory: Target::MEMORY,
    check,
};

fn check(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    let read = Replies::parse("replies.yaml", text);
    if let Err(mistakes) = &read {
        assert!(!mistakes.is_empty(), "a file is refused, and nothing is said");
        assert!(mistakes.iter().all(|found| found.file.as_deref() == Some("replies.yaml")));
        check_places(text, mistakes);
    }
    let again = Replies::parse("replies.yaml", text);
    assert_eq!(format!("{again:?}"), format!("{read:?}"), "reading again finds something else");
}
