//! `prune`: the runs that it deletes and keeps, and that no run is ever half deleted.

use std::fs;
use std::os::unix::fs::{chown, symlink};

use rustix::process::{Signal, geteuid};
use serde_json::json;

use crate::harness::{Output, Project, until};

fn project() -> Project {
    let project = Project::of(&[
        ("good/START.sh", "echo '<result>fine</result>'"),
        ("bad/START.sh", "exit 1"),
        ("slow/START.sh", "touch held; sleep 301"),
    ]);
    project.raymond("run good --run-id one-good").prints("fine\n");
    project.raymond("run bad --run-id one-bad").mentions(1, &[]);
    project
}

/// The runs there are, and their state files.
fn runs(project: &Project) -> Vec<String> {
    let names = |folder: &str| {
        let entries = fs::read_dir(project.path(folder)).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let runs = names(".raymond/runs");
    let states: Vec<String> = runs.iter().map(|run| format!("{run}.json")).collect();
    assert_eq!(names(".raymond/state"), states, "a run goes with its state file");
    runs
}

/// The lines on stdout without times and sizes.
fn actions(output: &Output) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    let cut = |line: &str| words(line).split(" 20").next().unwrap().to_owned();
    output.stdout.lines().map(cut).collect()
}

#[test]
fn prune_deletes_only_old_finished_runs_by_default() {
    let project = project();
    let output = project.raymond("prune");
    output
        .prints("")
        .mentions(0, &["nothing to delete\n1 finished run is younger than 30d; --older-than "]);
    let stays = "1 unfinished run is kept; --unfinished takes those older than 30d";
    output.mentions(0, &[stays]);
    assert_eq!(runs(&project), ["one-bad", "one-good"]);
    let dry = project.raymond("prune --older-than 1ms --dry-run");
    assert_eq!(actions(&dry), ["would delete one-good completed"]);
    dry.mentions(0, &["would delete 1 run, and free "]);
    assert_eq!(runs(&project), ["one-bad", "one-good"]);
    let output = project.raymond("prune --older-than 0s");
    assert_eq!(actions(&output), ["deleted one-good completed"]);
    output.mentions(0, &["deleted 1 run, freed ", "1 unfinished run is kept"]);
    assert_eq!(runs(&project), ["one-bad"]);
    let output = project.raymond("prune --older-than 1ms --unfinished");
    assert_eq!(actions(&output), ["deleted one-bad failed"]);
    assert_eq!(runs(&project), [""; 0]);
    project.raymond("prune").prints("").says(0, "nothing to delete");
    project
        .raymond("list")
        .says(0, "the project /project has no runs; raymond run WORKFLOW starts one");
}

#[test]
fn suggested_age_deletes_all_finished_runs() {
    let project = project();
    project.raymond("run good --run-id two").prints("fine\n");
    let output = project.raymond("prune");
    let offer = output.stderr.lines().find(|line| line.starts_with("2 finished runs are younger"));
    let offer = offer.unwrap().split("--older-than ").nth(1).unwrap();
    let age = offer.split(' ').next().unwrap();
    project.raymond(&format!("prune --older-than {age}")).mentions(0, &["deleted 2 runs"]);
    assert_eq!(runs(&project), ["one-bad"]);
}

#[test]
fn named_runs_are_deleted_all_or_none() {
    let project = project();
    project.raymond("prune one-good nope").prints("").says(
        2,
        "raymond: there is no run \"nope\"
        hint: see `raymond list`",
    );
    assert_eq!(runs(&project), ["one-bad", "one-good"]);
    let output = project.raymond("prune one-b one-good one-bad");
    assert_eq!(actions(&output), ["deleted one-bad failed", "deleted one-good completed"]);
    output.mentions(0, &["deleted 2 runs, freed "]);
    assert_eq!(runs(&project), [""; 0]);
    for both in ["prune x --unfinished", "prune x --older-than 1d"] {
        project.raymond(both).mentions(2, &["cannot be used with"]);
    }
    project.raymond("prune --older-than soon").mentions(2, &["is not a duration"]);
}

#[test]
fn json_lists_deleted_and_kept_runs() {
    let project = project();
    let mut object = project.raymond("prune --older-than 1ms --json").json();
    let deleted = object["deleted"][0].as_object_mut().unwrap();
    let bytes = deleted.remove("bytes").unwrap().as_u64().unwrap();
    assert!(deleted.remove("updated_at").unwrap().as_str().unwrap().ends_with('Z'));
    assert!(bytes > 1000, "{bytes}");
    assert_eq!(
        object,
        json!({
            "version": 1, "dry_run": false, "freed_bytes": bytes, "younger": 0, "unfinished": 1,
            "deleted": [{ "run_id": "one-good", "status": "completed" }], "kept": [],
        })
    );
}

#[test]
fn run_with_an_owner_is_kept() {
    let project = project();
    let running = project.start("run slow --run-id r");
    until("the script runs", || project.path("held").exists());
    project.raymond("prune one-good r").prints("").says(
        6,
        "raymond: another process drives r
        hint: end it first: raymond stop r",
    );
    project.raymond("prune --older-than 1ms --unfinished").mentions(0, &["deleted 2 runs"]);
    assert_eq!(runs(&project), ["r"]);
    project.raymond("stop r").mentions(0, &["stopped"]);
    running.wait();
    project.raymond("prune r").mentions(0, &["deleted 1 run"]);
}

#[test]
fn run_with_leftover_processes_is_kept() {
    let project = project();
    let running = project.start("run slow --run-id r");
    until("the script runs", || project.path("held").exists());
    running.signal(Signal::KILL);
    running.wait();
    project.raymond("prune r").prints("").says(
        2,
        "raymond: processes of r still run
        hint: end them first: raymond stop r",
    );
    let output = project.raymond("prune --older-than 1ms --unfinished");
    output.mentions(0, &["deleted 2 runs", "r stays: processes of r still run"]);
    let object = project.raymond("prune --older-than 1ms --unfinished --json").json();
    assert_eq!(object["kept"], json!([{ "run_id": "r", "why": "processes of r still run" }]));
    assert_eq!(runs(&project), ["r"]);
    project.raymond("stop r").mentions(0, &["stopped"]);
    let output = project.raymond("prune r");
    assert_eq!(actions(&output), ["deleted r stopped"]);
}

// proves: S7
#[test]
fn links_and_runs_of_others_are_left_alone() {
    let project = project();
    let place = |name: &str| project.path(&format!(".raymond/runs/{name}"));
    fs::rename(place("one-good"), project.path("precious")).unwrap();
    symlink(project.path("precious"), place("one-good")).unwrap();
    let refused =
        "could not delete one-good: /project/.raymond/runs/one-good is a link or not a directory";
    project.raymond("prune one-good").prints("").says(7, &format!("raymond: {refused}"));
    let output = project.raymond("prune --older-than 1ms");
    output.prints("").mentions(0, &["nothing to delete", &format!("one-good stays: {refused}")]);
    assert!(project.path("precious/journal.jsonl").exists());
    if geteuid().is_root() {
        chown(place("one-bad"), Some(12345), None).unwrap();
        let output = project.raymond("prune one-bad");
        let foreign = "/project/.raymond/runs/one-bad belongs to user 12345";
        output.says(7, &format!("raymond: could not delete one-bad: {foreign}"));
        assert!(place("one-bad").exists());
    }
}

// proves: S7
#[test]
fn links_inside_a_run_are_never_followed() {
    let project = project();
    project.write("outside/precious", "x");
    let link = project.path(".raymond/runs/one-good/inbox/link");
    symlink(project.path("outside"), link).unwrap();
    project.raymond("prune one-good").mentions(0, &["deleted 1 run"]);
    assert_eq!(project.read("outside/precious"), "x");
    assert_eq!(runs(&project), ["one-bad"]);
}

#[test]
fn unreadable_runs_are_deleted_only_by_name() {
    let project = project();
    let journal = project.read(".raymond/runs/one-good/journal.jsonl");
    project.write(".raymond/runs/one-good/journal.jsonl", format!("{journal}junk\n"));
    fs::create_dir(project.path(".raymond/runs/empty")).unwrap();
    project.raymond("prune empty").prints("").says(
        2,
        "raymond: empty may be starting just now
        hint: try again in a minute",
    );
    project.never_started("empty");
    let damaged = project.read(".raymond/runs/one-bad/journal.jsonl");
    let record = damaged.find('\n').unwrap() + 20;
    let damaged = format!("{}?{}", &damaged[..record], &damaged[record + 1..]);
    project.write(".raymond/runs/one-bad/journal.jsonl", damaged);
    project.raymond("prune one-bad").mentions(
        7,
        &["its first record is damaged", "then delete /project/.raymond/runs/one-bad"],
    );
    project.write(".raymond/runs/foreign/journal.jsonl", "not ours\n");
    let output = project.raymond("prune empty one-good");
    assert_eq!(actions(&output), ["deleted empty never started", "deleted one-good completed"]);
    let output = project.raymond("prune foreign");
    output.mentions(
        7,
        &["this is not the journal of a run", "delete /project/.raymond/runs/foreign"],
    );
    assert!(project.path(".raymond/runs/foreign").exists());
    assert!(!project.path(".raymond/runs/empty").exists());
}

#[test]
fn next_prune_removes_files_of_interrupted_one() {
    let project = project();
    let from = project.path(".raymond/runs/one-good");
    fs::rename(from, project.path(".raymond/runs/.removed-0-one-good")).unwrap();
    fs::remove_file(project.path(".raymond/state/one-good.json")).unwrap();
    project.raymond("status one-good").mentions(2, &["there is no run \"one-good\""]);
    project.raymond("prune --dry-run").mentions(0, &["nothing to delete"]);
    let found = "files of deleted runs remain: /project/.raymond/runs/.removed-0-one-good";
    let doctor = project.raymond("doctor");
    assert!(doctor.stdout.contains(found), "{doctor:?}");
    assert!(project.path(".raymond/runs/.removed-0-one-good").exists());
    project.raymond("prune").mentions(0, &["nothing to delete"]);
    assert_eq!(runs(&project), ["one-bad"]);
    // Its name is free.
    project.raymond("run good --run-id one-good").prints("fine\n");
}

#[test]
fn concurrent_resume_and_prune_leave_no_partial_run() {
    for _ in 0..12 {
        let project = project();
        let resuming = project.start("resume one-bad");
        let pruning = project.start("prune one-bad");
        let (resumed, pruned) = (resuming.wait(), pruning.wait());
        match (resumed.code(), pruned.code()) {
            // The resume ended earlier, found no run, or met the prune.
            (1 | 2 | 6 | 7, 0) => {
                assert_eq!(runs(&project), ["one-good"], "{resumed:?} {pruned:?}");
            }
            // The run had an owner, or had continued.
            (1, 2 | 6) => assert_eq!(runs(&project), ["one-bad", "one-good"]),
            _ => panic!("{resumed:?} {pruned:?}"),
        }
    }
}
