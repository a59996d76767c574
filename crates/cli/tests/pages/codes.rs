//! The troubleshooting page explains the code of every diagnostic, and shows an example of each.
//!
//! The codes are read from the sources: where a diagnostic is made, its code is the first argument
//! that is a literal.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use raymond_core::crayfish::ProblemCode;

use super::top;

/// Calls that create a diagnostic.
const MAKERS: [&str; 6] = [
    "Diagnostic::error(",
    "Diagnostic::warning(",
    ".error(",
    "error_with_hint(",
    "left_out(",
    "reject(",
];

type Codes = BTreeSet<String>;

#[test]
fn every_diagnostic_code_is_explained_and_shown() {
    let page = fs::read_to_string(top().join("docs/troubleshooting.md")).unwrap();
    let (_, section) = page.split_once("\n## By the code of a mistake\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let made = made();
    assert!(made.len() > 30, "the sources are read wrongly: {made:?}");
    assert_eq!(explained(section), made, "explained, and made by the sources");
    assert_eq!(shown(section), made, "shown, and made by the sources");
}

/// The codes that the sources give to diagnostics.
fn made() -> Codes {
    let crates = fs::read_dir(top().join("crates")).unwrap();
    let mut files = Vec::new();
    for directory in crates {
        sources(&directory.unwrap().path().join("src"), &mut files);
    }
    files.iter().flat_map(|file| codes_in(&fs::read_to_string(file).unwrap())).collect()
}

/// Collects all source files without tests.
fn sources(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match (path.is_dir(), path.file_stem().unwrap().to_str().unwrap()) {
            (_, "tests" | "conformance") => {}
            (true, _) => sources(&path, files),
            (false, _) => files.push(path),
        }
    }
}

fn codes_in(source: &str) -> Codes {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let calls = MAKERS.iter().flat_map(|maker| source.split(maker).skip(1));
    let mut found: Codes = calls.filter_map(first_code).collect();
    // One function names the codes of names that do not resolve.
    if let Some((_, body)) = source.split_once("fn code(") {
        let body = body.split("\n}").next().unwrap_or_default();
        found.extend(literals(body).filter(|(word, _)| is_code(word)).map(|(word, _)| word.into()));
    }
    found
}

/// The first literal among the arguments, when it looks like a code.
fn first_code(call: &str) -> Option<String> {
    let arguments = call.split(';').next().unwrap_or_default();
    let (word, after) = literals(arguments).next()?;
    (is_code(word) && after.starts_with(',')).then(|| word.to_owned())
}

/// The literals of a text, each with what follows it.
fn literals(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, from) = rest.split_once('"')?;
        let (word, after) = from.split_once('"')?;
        rest = after;
        Some((word, after))
    })
}

fn is_code(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// The codes that head a row of a table.
fn explained(section: &str) -> Codes {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`')).map(|(code, _)| code.to_owned()).collect()
}

/// The codes in brackets at the end of messages.
fn shown(section: &str) -> Codes {
    let is_message = |line: &&str| line.contains("error: ") || line.contains("warning: ");
    let messages = section.lines().filter(is_message).filter_map(|line| line.strip_suffix(']'));
    let codes = messages.filter_map(|line| line.rsplit_once(" [")).map(|(_, code)| code);
    // The codes of documents of steps are on another page.
    let of_steps = |code: &&str| {
        code.contains('_') && ProblemCode::ALL.iter().any(|known| known.as_str() == *code)
    };
    codes.filter(|code| !of_steps(code)).map(str::to_owned).collect()
}
