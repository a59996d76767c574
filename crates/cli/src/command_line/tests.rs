//! Tests that the parser accepts every command line in the prose of the pages.
//!
//! Command lines in `console` fences are run by the tests of the pages. This module finds those in
//! backticks and in `text` fences; words in capitals are placeholders.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use super::with_run;
use crate::args::Arguments;

#[test]
fn every_documented_command_line_parses() {
    let mut lines = 0;
    for path in pages() {
        for line in spoken(&std::fs::read_to_string(&path).unwrap()) {
            lines += 1;
            // A placeholder for one of a few words, so its own name is not accepted.
            let words = with_run(words(&line.replace("<TAG>", "goto")).into_iter());
            let fault = Arguments::try_parse_from(words).err().map(|error| error.kind());
            let is_read = fault.is_none_or(only_lacks);
            assert!(is_read, "{}: {line}: {fault:?}", path.display());
        }
    }
    assert!(lines > 150, "only {lines} were found");
}

/// Whether a fault only means that the prose omits required arguments.
fn only_lacks(fault: ErrorKind) -> bool {
    matches!(fault, ErrorKind::DisplayHelp | ErrorKind::MissingRequiredArgument)
}

fn pages() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![top.join("README.md"), top.join("CHANGELOG.md")];
    let mut waiting = vec![top.join("docs"), top.join("examples")];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => waiting.push(path),
                Some("md") => pages.push(path),
                _ => {}
            }
        }
    }
    pages
}

/// Finds `raymond …` in backticks outside of fences, and at the start of lines in `text` fences.
fn spoken(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        match (fence, line.strip_prefix("```")) {
            (Some(_), Some(_)) => fence = None,
            (None, Some(head)) => fence = Some(head),
            (Some("text"), None) => found.push(line),
            (Some(_), None) => {}
            (None, None) => found.extend(line.split('`').skip(1).step_by(2)),
        }
    }
    found.retain(|line| line.starts_with("raymond "));
    found.into_iter().map(str::to_owned).collect()
}

/// Splits a line like a shell, up to a pipe, a redirection or a comment.
fn words(line: &str) -> Vec<OsString> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, ' ') => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    let words =
        words.into_iter().take_while(|word| !matches!(word.as_str(), "<" | ">" | "|" | "&&" | "#"));
    words.filter(|word| !word.is_empty() && word != "[OPTIONS]").map(|word| meant(&word)).collect()
}

/// Replaces a placeholder by a valid value.
fn meant(word: &str) -> OsString {
    match word.trim_matches(['[', ']', '<', '>']).trim_end_matches("...") {
        "COMMAND" => "run",
        "WORKFLOW" => "flows/review",
        "N" | "USD" | "MORE" | "RECORD" => "3",
        "D" | "DURATION" => "10m",
        "SHELL" => "bash",
        "WHAT" => "request",
        other => other,
    }
    .into()
}

#[test]
fn command_lines_are_found_and_split() {
    let text =
        "Say `raymond why`, `cargo`.\n```text\nraymond list\nother\n```\n```sh\nraymond x\n```\n";
    assert_eq!(spoken(text), ["raymond why", "raymond list"]);
    let check = |line: &str, expected: &[&str]| {
        assert_eq!(words(line), expected.iter().map(OsString::from).collect::<Vec<_>>(), "{line}");
    };
    check("raymond resume [RUN] --budget USD", &["raymond", "resume", "RUN", "--budget", "3"]);
    check(
        "raymond run x --input 'a \"b\" c' > out",
        &["raymond", "run", "x", "--input", "a \"b\" c"],
    );
    check("raymond run [OPTIONS] <WORKFLOW>", &["raymond", "run", "flows/review"]);
}

#[test]
fn first_flag_belongs_to_run_unless_mistyped() {
    let words = |flag: &str| with_run(["raymond", flag].map(Into::into).into_iter());
    for flag in ["--help", "--version", "--verson", "--hepl"] {
        assert_eq!(words(flag), ["raymond", flag]);
    }
    let run = Arguments::command().find_subcommand("run").unwrap().clone();
    for flag in run.get_arguments().filter_map(clap::Arg::get_long) {
        let flag = format!("--{flag}");
        assert_eq!(words(&flag), ["raymond", "run", &flag]);
    }
}
