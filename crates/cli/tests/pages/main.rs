//! Plays every page that shows commands, and compares the output with the page.
//!
//! A page is the README, a page of the book, the README of an example, or a screen that is pinned
//! in `tests/screens`. It is played from top to bottom in a directory of its own:
//!
//! - a fence ```` ```LANG file=PATH ```` writes that file;
//! - a `console` fence holds commands behind `$ ` (and `> `, where they continue), each with what
//!   it prints; a command that fails is followed by `[exit N]`;
//! - an `sh` fence is run, and must succeed; so must the hidden commands in `<!-- setup: … -->`;
//! - `skip=REASON` in the head of a fence ignores it; so does the language `text`, or no language.
//!
//! `UPDATE=1` writes the output into the pages; `PAGE=WORD` plays only pages with this word in
//! their path.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod claims;
mod clocks;
mod codes;
mod compare;
mod journal;
mod links;
mod page;
mod play;
mod steps;

use std::fs;
use std::path::{Path, PathBuf};

use page::Page;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All pages below a directory of the repository, in order.
fn pages_in(directory: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![top().join(directory)];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Plays all pages, each in its own thread, and reports all differences.
fn check(pages: &[PathBuf]) {
    let wanted = std::env::var("PAGE").unwrap_or_default();
    let wanted = pages.iter().filter(|path| path.to_str().unwrap().contains(&wanted));
    let differences: Vec<String> = std::thread::scope(|scope| {
        let played: Vec<_> = wanted.map(|path| scope.spawn(|| check_page(path))).collect();
        played.into_iter().filter_map(|page| page.join().unwrap()).collect()
    });
    assert!(
        differences.is_empty(),
        "{}\n\nUPDATE=1 writes what was printed into the pages: read it before you keep it",
        differences.join("\n\n")
    );
}

/// Returns the differences of a page.
fn check_page(path: &Path) -> Option<String> {
    let name = path.strip_prefix(top()).unwrap().display().to_string();
    let text = fs::read_to_string(path).unwrap();
    let page = Page::parse(&text).unwrap_or_else(|fault| panic!("{name}:{fault}"));
    let stage = play::Stage::for_page(&top(), path, &text);
    let played = match page.play(&stage) {
        Ok(played) => played,
        Err(fault) => return Some(format!("{name}:{fault}")),
    };
    if std::env::var_os("UPDATE").is_some() {
        let updated = clocks::set(&page.with(&played));
        if updated != text {
            fs::write(path, updated).unwrap();
        }
        return None;
    }
    let mut differences: Vec<String> = page.differences(&played);
    differences.extend(clocks::wrong(&text));
    (!differences.is_empty()).then(|| {
        differences.iter().map(|line| format!("{name}:{line}")).collect::<Vec<_>>().join("\n")
    })
}

#[test]
fn readme_output_is_true() {
    check(&[top().join("README.md")]);
}

#[test]
fn book_output_is_true() {
    check(&pages_in("docs"));
}

#[test]
fn example_output_is_true() {
    let readme = |path: &PathBuf| path.file_name().unwrap() == "README.md";
    check(&pages_in("examples").into_iter().filter(readme).collect::<Vec<_>>());
}

#[test]
fn screens_are_true() {
    check(&pages_in("crates/cli/tests/screens"));
}

#[test]
fn no_link_is_broken() {
    let mut pages = pages_in("docs");
    pages.extend(pages_in("examples"));
    let others = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];
    pages.extend(others.map(|name| top().join(name)));
    let broken: Vec<_> =
        pages.iter().flat_map(|page| links::broken(page, &top().join("docs"))).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn book_summary_lists_every_page() {
    let book = top().join("docs");
    let (named, mut pages) = links::summary(&book, &pages_in("docs"));
    // Pages include them without their heads, which no book can show.
    for skill in ["raymond", "crayfish"] {
        assert!(pages.remove(&book.join("skills").join(skill).join("SKILL.md")));
    }
    assert_eq!(named, pages);
}
