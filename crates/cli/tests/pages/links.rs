//! Checks that no link of the pages is broken, and that the book lists every page.
//!
//! Links to other sites are not followed. A page of the book links only to pages of the book,
//! because files outside of `docs/` are missing when it is read in a browser.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Returns the broken links of a page.
pub(crate) fn broken(page: &Path, book: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let wrong = |link: &Link| {
        let why = why_broken(link, page, book)?;
        Some(format!("{}:{}: {}: {why}", page.display(), link.line, link.target))
    };
    links(&text).iter().filter_map(wrong).collect()
}

/// The files that the summary of the book names, and those that it should.
pub(crate) fn summary(book: &Path, pages: &[PathBuf]) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let summary = book.join("SUMMARY.md");
    let text = fs::read_to_string(&summary).unwrap();
    let named = links(&text).into_iter().map(|link| book.join(link.target)).collect();
    (named, pages.iter().filter(|page| **page != summary).cloned().collect())
}

struct Link {
    /// From 1.
    line: usize,
    target: String,
}

/// Every `[…](target)` and `![…](target)` outside of code.
fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    for (line, text) in prose(text) {
        let mut rest = text.as_str();
        while let Some((_, behind)) = rest.split_once("](") {
            let target = behind.split_once(')').map_or(behind, |(target, _)| target);
            links.push(Link { line, target: target.to_owned() });
            rest = behind;
        }
    }
    links
}

/// The lines outside of fences, without the text in backticks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let spoken = |line: &str| line.split('`').step_by(2).collect();
    unfenced(text).into_iter().map(|(number, line)| (number, spoken(line))).collect()
}

/// The lines outside of fences, numbered from 1.
fn unfenced(text: &str) -> Vec<(usize, &str)> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line.trim_end() == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => lines.push((number, line)),
        }
    }
    lines
}

fn why_broken(link: &Link, page: &Path, book: &Path) -> Option<String> {
    if link.target.contains("://") {
        return None;
    }
    let (path, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
    let to = if path.is_empty() { page.to_owned() } else { plain(&page.parent()?.join(path)) };
    if !to.exists() {
        return Some("there is no such file".to_owned());
    }
    if page.starts_with(book) && !to.starts_with(book) {
        return Some("it leads out of the book".to_owned());
    }
    let missing = !anchor.is_empty() && !anchors(&fs::read_to_string(&to).ok()?).contains(anchor);
    missing.then(|| "there is no such heading".to_owned())
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            _ => plain.push(part),
        }
    }
    plain
}

/// The anchors of the headings of a page; one that repeats is numbered.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (_, line) in unfenced(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(heading.trim());
        let count = seen.entry(anchor.clone()).or_default();
        all.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    all
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " _-".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_only_in_prose() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<String> = links(text).into_iter().map(|link| link.target).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("see [a](b.md) and ![c](d.svg)", &["b.md", "d.svg"]);
        check("[`run`](#run)", &["#run"]);
        check("`[a](b.md)`", &[]);
        check("```\n[a](b.md)\n```\n[c](d.md#e)", &["d.md#e"]);
        check("````\n```\n[a](b.md)\n````", &[]);
    }

    #[test]
    fn heading_has_the_anchor_of_browsers() {
        let check = |text: &str, expected: &[&str]| {
            let expected = expected.iter().map(|anchor| (*anchor).to_owned()).collect();
            assert_eq!(anchors(text), expected, "{text}");
        };
        check("# Which model", &["which-model"]);
        check("### max_visits and then", &["max_visits-and-then"]);
        check("## `run`, again!", &["run-again"]);
        check("## A\n## A", &["a", "a-1"]);
        check("```\n# no heading\n```", &[]);
        check("#no heading", &[]);
    }

    #[test]
    fn broken_link_is_reported_with_its_line() {
        let place = tempfile::tempdir().unwrap();
        let book = place.path().join("docs");
        fs::create_dir(&book).unwrap();
        let page = book.join("page.md");
        fs::write(place.path().join("out.md"), "").unwrap();
        let text = "# Here\n[a](#here) [b](page.md#here) [c](https://x.y/z)\n[d](#there)\n\
                    [e](gone.md)\n[f](../out.md)\n";
        fs::write(&page, text).unwrap();
        let name = page.display();
        let expected = [
            format!("{name}:3: #there: there is no such heading"),
            format!("{name}:4: gone.md: there is no such file"),
            format!("{name}:5: ../out.md: it leads out of the book"),
        ];
        assert_eq!(broken(&page, &book), expected);
    }
}
