//! Every attack of docs/security.md.

mod callers;
mod journals;
mod neighbours;
mod repositories;
mod terminals;
mod web;

use std::path::Path;
use std::sync::Arc;

use raymond_store::Journal;
use raymond_store::disk::RealDisk;
use serde_json::Value;

use crate::harness::{Output, Project};

/// Commands that read a run and change nothing.
const LOOKS: [&str; 13] = [
    "list",
    "list --json",
    "status r",
    "status r --json",
    "why r",
    "show r",
    "show r --json",
    "logs r",
    "cost r",
    "config",
    "doctor",
    "resume r --plan",
    "wait r",
];

/// Rewrites every line of the journal of `r` with `change`, with valid checksums. Everyone who
/// knows the format can do this.
fn forge(project: &Project, change: impl Fn(String) -> String) {
    let path = project.path(".raymond/runs/r/journal.jsonl");
    let old = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<String> = old.lines().map(|line| change(unsummed(line))).collect();
    let disk = Arc::new(RealDisk);
    let mut journal = Journal::create(disk, &path, lines[0].as_bytes()).unwrap();
    for line in &lines[1..] {
        journal.append(line.as_bytes()).unwrap();
    }
}

/// The line without its sum, which is its last field.
fn unsummed(line: &str) -> String {
    let (body, _) = line.rsplit_once(",\"sum\":").unwrap();
    let body = format!("{body}}}");
    assert!(serde_json::from_str::<Value>(&body).is_ok(), "{body}");
    body
}

/// Fails if the output contains control characters that a terminal would obey.
#[track_caller]
fn is_plain(output: &Output) {
    let obeyed = |c: char| c.is_control() && c != '\n';
    for text in [&output.stdout, &output.stderr] {
        assert!(!text.contains(obeyed), "{output:?}");
    }
}

/// Every file and link below a directory, with its content.
fn everything(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(everything(&path));
        }
        let content = std::fs::read(&path).unwrap_or_default();
        let content = String::from_utf8_lossy(&content).into_owned();
        found.push((path.display().to_string(), content));
    }
    found.sort();
    found
}
