//! Every example, run with its replies: examples cannot rot, and their READMEs tell the truth.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An example, the file of replies, and what it prints.
const EXAMPLES: [(&str, &str, &str); 4] = [
    ("title", "replies.yaml", "A night at sea (8)"),
    ("review", "replies.yaml", "accepted: --jobs refuses 0"),
    ("review", "stubborn.yaml", "not accepted after 3 reviews: a person should look at it"),
    ("research", "replies.yaml", "the answers are in answers-demo.tsv"),
];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test starts the program that it tests")]
fn run(project: &Path, example: &str, replies: &str) -> Output {
    let example = top().join("examples").join(example);
    let mut command = Command::new(env!("CARGO_BIN_EXE_raymond"));
    command.current_dir(project).arg("run").arg(example.join("workflow"));
    command.arg("--replies").arg(example.join(replies)).args(["--run-id", "demo"]);
    command.args(["--input", "We sailed until the stars went out."]).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn every_example_prints_its_result() {
    for (example, replies, expected) in EXAMPLES {
        let project = tempfile::tempdir().unwrap();
        let output = run(project.path(), example, replies);
        let found = (output.status.code(), text(&output.stdout));
        let expected_line = format!("{expected}\n");
        let talk = text(&output.stderr);
        assert_eq!(found, (Some(0), expected_line.as_str()), "{example} with {replies}: {talk}");
        let readme = fs::read_to_string(top().join("examples").join(example).join("README.md"));
        assert!(readme.unwrap().contains(expected), "the README of {example} tells {expected:?}");
    }
}

#[test]
fn every_file_of_replies_is_played() {
    let mut found = BTreeSet::new();
    for example in fs::read_dir(top().join("examples")).unwrap() {
        let example = example.unwrap().path();
        let name = example.file_name().unwrap().to_str().unwrap().to_owned();
        for file in fs::read_dir(&example).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            if Path::new(&file).extension().is_some_and(|extension| extension == "yaml") {
                found.insert((name.clone(), file));
            }
        }
    }
    let played = EXAMPLES.map(|(example, replies, _)| (example.to_owned(), replies.to_owned()));
    assert_eq!(found, BTreeSet::from(played));
}

#[test]
fn every_worker_of_the_research_writes_its_answer() {
    let project = tempfile::tempdir().unwrap();
    run(project.path(), "research", "replies.yaml");
    let answers = fs::read_to_string(project.path().join("answers-demo.tsv")).unwrap();
    let mut answers: Vec<&str> = answers.lines().collect();
    answers.sort_unstable();
    let expected = [
        "main_answer1\tWhy is the build slow?\tone crate is built twice",
        "main_answer2\tWhich tests are flaky?\ttwo, both wait for a port",
        "main_answer3\tWhat does nobody use?\tthe export to CSV",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn the_readme_shows_its_example_as_it_is() {
    let readme = fs::read_to_string(top().join("README.md")).unwrap();
    let example = top().join("examples/title");
    for file in ["workflow/START.md", "workflow/JUDGE.md", "workflow/DONE.sh", "replies.yaml"] {
        let content = fs::read_to_string(example.join(file)).unwrap();
        assert!(readme.contains(content.trim_end()), "README.md has another {file}");
    }
}
