//! The page of patterns shows the examples as they are.

use std::fs;

use crate::stage::top;

/// The fences of the page that name the file they are taken from, with their lines.
fn excerpts(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut lines = page.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if let Some((_, file)) = line.split_once(" skip=examples/") {
            found.push((file, lines.by_ref().take_while(|line| *line != "```").collect()));
        }
    }
    found
}

/// Whether the text contains these lines in order, with omissions at each `…`.
fn is_excerpt(lines: &[&str], text: &str) -> bool {
    let parts = lines.split(|line| line.trim() == "…").map(|part| part.join("\n") + "\n");
    let mut rest = text;
    parts.into_iter().filter(|part| part != "\n").all(|part| match rest.find(&part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[test]
fn every_excerpt_is_in_its_example() {
    let page = fs::read_to_string(top().join("docs/patterns.md")).unwrap();
    let excerpts = excerpts(&page);
    assert!(excerpts.len() >= 8, "there are only {}", excerpts.len());
    for (file, lines) in excerpts {
        let text = fs::read_to_string(top().join("examples").join(file)).unwrap();
        assert!(is_excerpt(&lines, &text), "this is not in {file}:\n{}", lines.join("\n"));
        assert!((4..=16).contains(&lines.len()), "{file}: {} lines", lines.len());
    }
}

#[test]
fn excerpt_keeps_the_order_of_lines() {
    let check = |lines: &[&str], expected| assert_eq!(is_excerpt(lines, "a\nb\nc\nd\n"), expected);
    check(&["a", "b"], true);
    check(&["a", "…", "d"], true);
    check(&["…", "c"], true);
    check(&["a", "c"], false);
    check(&["d", "…", "a"], false);
}
