//! The benchmark can fail: programs that say they are done, and did not do the work, are found out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Returns a directory of programs that all run this script.
fn programs(script: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["raymond", "floor", "instant"] {
        let path = directory.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }
    directory
}

/// The benchmark refuses these programs and these words, and says why. In memory it refuses
/// everything.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the benchmark is not part of the product")]
fn refused(programs: &Path, words: &[&str], why: &str) {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    bench.arg(programs).args(words).env("TMPDIR", env!("CARGO_TARGET_TMPDIR"));
    let output = bench.output().expect("it runs");
    assert!(!output.status.success(), "{words:?} was measured");
    let said = String::from_utf8(output.stderr).expect("it is text");
    assert!(said.contains(why) || said.contains("is in memory"), "{words:?}: {said}");
}

#[track_caller]
fn check(script: &str, found: &[(&str, &str)]) {
    let programs = programs(script);
    for (part, why) in found {
        refused(programs.path(), &[part], why);
    }
}

#[test]
fn program_without_work_is_detected() {
    check(
        "echo done",
        &[
            ("scripts", "reading steps"),
            ("turns", "reading turns"),
            ("workers", "reading steps"),
            ("help", "it did not help"),
            ("one", "reading steps"),
            ("agents", "it was over before the others wait"),
            ("texts", "reading steps"),
            ("payloads", "reading sizes"),
            ("journals", "it was over before the last step runs"),
            ("scopes", "reading steps"),
            ("execs", "expected value"),
            ("answers", "expected value"),
        ],
    );
}

#[test]
fn program_without_output_is_detected() {
    check("exit 0", &[("scripts", "it printed \"\""), ("C", "it did not help")]);
    check("echo oh no >&2; exit 3", &[("scripts", "oh no"), ("F", "oh no")]);
}

#[test]
fn program_without_records_is_detected() {
    let nothing = "nothing is recorded";
    let steps = "yes x | head -n 2000 | tee steps turns > /dev/null; echo done";
    check(steps, &[("scripts", nothing), ("turns", nothing)]);
    check("yes x | head -n 20 > steps; echo done", &[("texts", nothing)]);
    check("yes 1040 | head -n 10 > sizes; echo done", &[("payloads", nothing)]);
    check("echo x >> steps; echo done", &[("one", nothing), ("scopes", nothing)]);
    let workers = "yes x | head -n 1000 > steps; printf '{\"status\":\"completed\",\"results\":{\"main\":\"done\"'; \
                   for i in $(seq 1000); do printf ',\"main_worker%d\":\"%d\"' $i $i; done; echo '}}'";
    check(workers, &[("workers", nothing)]);
    let done = "printf '{\"status\":\"completed\",\"results\":{\"a\":1'; for i in $(seq 1000); \
                do printf ',\"all[%d].one\":{\"ok\":true,\"attempts\":1}' $i; done; echo '}}'";
    check(done, &[("execs", nothing)]);
}

#[test]
fn program_with_wrong_records_is_detected() {
    let few = "yes x | head -n 1999 > steps; echo done";
    check(few, &[("scripts", "steps has 1999 lines instead of 2000")]);
    let steps = "yes x | head -n 2000 > steps; echo done";
    let journal = "mkdir -p .raymond/runs/r; yes '{\"turn_settled\":{}}' | head -n 2000 > .raymond/runs/r/journal.jsonl";
    check(&format!("{journal}; {steps}"), &[("scripts", "journal.jsonl")]);
}

#[test]
fn bad_arguments_are_refused() {
    let programs = programs("echo done");
    let refused = |words: &[&str], why: &str| refused(programs.path(), words, why);
    refused(&["--rounds", "4"], "a median of fewer than 5 says little");
    refused(&["--rounds", "few"], "--rounds takes a number");
    refused(&["--json", "no/such/place"], "creating no/such/place");
    refused(&["Z"], "there is no row \"Z\": A (scripts)");
}
