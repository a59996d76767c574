//! `raymond demo`, run by the real binary.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use raymond_testkit::private_command::private_command;

fn demo(temporary: &Path, flags: &[&str]) -> Output {
    raymond(temporary).arg("demo").args(flags).env("TMPDIR", temporary).output().unwrap()
}

/// A command whose user has a home in `directory`. The tests check that nothing is written there.
fn raymond(directory: &Path) -> Command {
    let mut command = private_command(env!("CARGO_BIN_EXE_raymond"), &directory.join("home"));
    command.current_dir(directory);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The one directory in `temporary`.
fn kept(temporary: &Path) -> std::path::PathBuf {
    let mut entries = std::fs::read_dir(temporary).unwrap();
    let kept = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    kept
}

/// Checks that the output contains all lines in this order.
fn check_order(output: &str, lines: &[&str]) {
    let mut rest = output;
    for line in lines {
        let Some(at) = rest.find(line) else {
            panic!("{line:?} is not, or not there, in\n{output}")
        };
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn demo_claims_are_true_and_nothing_remains() {
    let temporary = tempfile::tempdir().unwrap();
    let played = demo(temporary.path(), &[]);
    assert_eq!((played.status.code(), text(&played.stderr).as_str()), (Some(0), ""));
    let output = text(&played.stdout);
    check_order(
        &output,
        &[
            "Act 1: a call and a function\n",
            "$ raymond run notes --run-id first --replies notes.yaml --budget 2\n",
            "PLAN.md → DIG.md (call) · $0.04\n",
            "WRITE.md → JUDGE.md (function) · $0.05\n",
            "  │ published, 8/10: Search is twice as fast. There is a dark mode.\n",
            "  DIG.md    works in B, a branch of A\n  WRITE.md  continues A, with the result of DIG\n",
            "Act 2: a fork\n",
            "  main_check1   parser: 2 mistakes\n  main_check2   network: none\n",
            "Act 3: kill -9 and resume\n",
            "$ kill -9 ",
            "  │ third  interrupted\n",
            "  │ third: reused 4 turns ($0.21), continuing 1, repeating 0\n",
            "  │ published, 8/10: Search is twice as fast. There is a dark mode.\n",
            "  6 turns finished, each of them once; 1 attempt was interrupted\n",
            "  spent $0.36 of $2.00: $0.24 as in act 1,\n",
            "  published.log has 2 lines, one for each run\n",
        ],
    );
    assert!(!output.contains('\u{1b}'), "off a terminal there are plain lines:\n{output}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn kept_demo_can_be_inspected() {
    let temporary = tempfile::tempdir().unwrap();
    let played = demo(temporary.path(), &["--keep"]);
    assert_eq!(played.status.code(), Some(0));
    let directory = kept(temporary.path());
    assert!(text(&played.stdout).contains(directory.to_str().unwrap()));
    let status = raymond(&directory).args(["status", "third", "--json"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    // The turn that the kill interrupted is counted once, with both attempts.
    assert_eq!((&status["status"], &status["turns"]), (&"completed".into(), &6.into()));
}

#[test]
fn failed_demo_reports_the_difference() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = raymond(temporary.path());
    // Without bash no script state runs.
    let command = command.arg("demo").env("TMPDIR", temporary.path()).env("PATH", "/nonexistent");
    let played = command.output().unwrap();
    let expected = "raymond: the demo did not run as expected: the exit code of the first run: \
                    expected Some(0), found Some(1)\n";
    assert_eq!((played.status.code(), text(&played.stderr).as_str()), (Some(1), expected));
    assert!(kept(temporary.path()).join(".raymond/runs/first/journal.jsonl").exists());
}
