//! Clients on a full or unreadable disk: every paid request is charged, and nothing is paid
//! twice.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::until;
use crate::mounts::{in_private, mount};
use crate::stage::{Stage, client};

const FILL: &str = ".raymond/fill";

/// Mounts a separate disk on `.raymond/`, with room for the ballast and for the transcripts of two
/// clients.
fn on_small_disk(stage: &Stage) {
    mount(&stage.project, ".raymond", &["-t", "tmpfs", "-o", "size=12m", "tmpfs"]);
}

/// Fills the disk to its last byte.
fn fill(stage: &Stage) {
    let mut file = File::create(stage.project.path(FILL)).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    while file.write_all(&[0]).is_ok() {}
}

fn make_room(stage: &Stage) {
    fs::remove_file(stage.project.path(FILL)).unwrap();
}

/// Micro-dollars.
fn charged(stage: &Stage) -> u64 {
    stage.charges().iter().map(|(_, amount, _)| amount).sum()
}

/// A turn that costs a quarter, and one that costs half a dollar and meets a full disk at its gate.
fn stage(at_the_gate: &str) -> Stage {
    Stage::prompts(&[
        ("START", "fake: cost 0.25\nfake: say <goto>NEXT</goto>"),
        (
            "NEXT",
            &format!(
                "fake: cost 0.5
                fake[1]: say working
                fake[1]: wait gate
                fake[1]: {at_the_gate}
                fake: say <result>done</result>"
            ),
        ),
    ])
}

#[track_caller]
fn waits_for_room(stage: &Stage, words: &str, invocations: usize) {
    let output = stage.raymond(words);
    let needed =
        ["could not reserve 4 MiB of disk space for ", " and leave 1 MiB free: the disk is full"];
    output.mentions(7, &needed);
    assert_eq!(stage.invocations().len(), invocations, "{:#?}", stage.turn_contexts());
}

// proves: A3
#[test]
fn full_disk_ends_the_run_and_charges_turn() {
    let name = "disks::full_disk_ends_the_run_and_charges_turn";
    in_private(name, || {
        // More than half of the reserved space, and less than all of it.
        let stage = stage("flood 3000000\nfake[1]: hang stall");
        on_small_disk(&stage);
        let running = stage.start_run("--budget 2");
        stage.reaches("gate");
        fill(&stage);
        stage.opens("gate");
        running
            .wait()
            .mentions(7, &["could not reserve 4 MiB of disk space for ", ": the disk is full"]);
        stage.leaves_nothing();
        assert_eq!(stage.failures(), ["environment"]);
        let spent = charged(&stage);
        assert!(spent >= 750_000, "{:?}", stage.charges());
        assert_eq!(stage.raymond("status r --json").json()["status"], json!("waiting"));
        // Nothing is repeated while there is no room.
        waits_for_room(&stage, "resume r", 2);
        waits_for_room(&stage, "resume r", 2);
        assert_eq!(charged(&stage), spent, "{:?}", stage.charges());
        make_room(&stage);
        stage.raymond("resume r").prints("done\n").mentions(0, &["of $2.00"]);
        assert_eq!(charged(&stage), spent + 500_000, "{:?}", stage.charges());
        assert_eq!(stage.invocations().len(), 3);
    });
}

#[test]
fn client_dead_of_full_disk_is_charged_once() {
    let name = "disks::client_dead_of_full_disk_is_charged_once";
    in_private(name, || {
        let stage = stage("flood 8000000");
        on_small_disk(&stage);
        let running = stage.start_run("--budget 2");
        stage.reaches("gate");
        let client = stage.invocations()[1].pid;
        running.signal(Signal::KILL);
        running.wait();
        fill(&stage);
        stage.opens("gate");
        until("it has died", || !stage.is_ours(client));
        waits_for_room(&stage, "resume r", 2);
        let (_, amount, basis) = stage.charges()[1].clone();
        assert!(amount > 0 || basis == "unpriced", "{:?}", stage.charges());
        make_room(&stage);
        stage.raymond("resume r").prints("done\n");
        assert_eq!(stage.invocations().len(), 3);
    });
}

// proves: A4
#[test]
fn no_client_starts_on_a_full_disk() {
    in_private("disks::no_client_starts_on_a_full_disk", || {
        let stage = Stage::prompts(&[("PAID", "fake: say <result>done</result>")]);
        let fills = format!("cat /dev/zero > {FILL} 2>/dev/null; echo '<goto>PAID</goto>'");
        stage.project.write("wf/START.sh", fills);
        on_small_disk(&stage);
        waits_for_room(&stage, "run wf --run-id r", 0);
        assert_eq!(charged(&stage), 0);
        waits_for_room(&stage, "resume r", 0);
        make_room(&stage);
        stage.raymond("resume r").prints("done\n").mentions(0, &["spent $0.01 of $10.00"]);
        let asked = stage.invocations().into_iter().filter(|client| client.refused.is_none());
        assert_eq!(asked.count(), 1);
    });
}

// proves: A41
#[test]
fn stop_and_cancel_work_on_a_full_disk() {
    in_private("disks::stop_and_cancel_work_on_a_full_disk", || {
        let cases = [("stop", "stopped"), ("cancel", "cancelled")];
        for ((verb, status), has_ballast) in
            cases.iter().flat_map(|case| [(case, true), (case, false)])
        {
            let stage = stage("say more");
            on_small_disk(&stage);
            let running = stage.start_run("--budget 2");
            stage.reaches("gate");
            if !has_ballast {
                fs::remove_file(stage.project.path(".raymond/ballast")).unwrap();
            }
            fill(&stage);
            stage.raymond(&format!("{verb} r")).mentions(0, &[&format!("r: {status}")]);
            running.wait();
            stage.leaves_nothing();
            assert!(charged(&stage) > 250_000, "{:?}", stage.charges());
            assert_eq!(stage.invocations().len(), 2);
        }
    });
}

/// A run whose owner was killed and whose client has finished. A directory replaces the transcript,
/// so it cannot be read, as on a broken disk.
fn unreadable() -> Stage {
    let stage = stage("say almost");
    let running = stage.start_run("--budget 2");
    stage.reaches("gate");
    let client = stage.invocations()[1].pid;
    running.signal(Signal::KILL);
    running.wait();
    stage.opens("gate");
    until("it has finished", || !stage.is_ours(client));
    let transcript = stage.project.path(".raymond/runs/r/transcripts/main.2.1.1.jsonl");
    fs::rename(&transcript, stage.project.path("kept")).unwrap();
    fs::create_dir(transcript).unwrap();
    stage
}

// proves: A5
#[test]
fn outcome_in_unreadable_transcript_is_not_paid_twice() {
    let stage = unreadable();
    let records = stage.project.records("r");
    for words in ["resume r", "resume r --plan", "stop r"] {
        let output = stage.raymond(words);
        output.prints("").mentions(
            7,
            &[
                "could not read the transcript ",
                "transcripts/main.2.1.1.jsonl: Is a directory",
                "hint: make the file readable again, then run the same command",
            ],
        );
    }
    assert_eq!(stage.project.records("r"), records, "nothing is recorded");
    let why = stage.raymond("why r");
    assert!(why.stdout.contains("main.2.1.1.jsonl, which cannot be read: "), "{}", why.stdout);
    assert!(why.stdout.ends_with("\n→ raymond cancel r\n"), "{}", why.stdout);
    let transcript = stage.project.path(".raymond/runs/r/transcripts/main.2.1.1.jsonl");
    fs::remove_dir(&transcript).unwrap();
    fs::rename(stage.project.path("kept"), transcript).unwrap();
    stage.raymond("resume r").prints("done\n").mentions(0, &["spent $0.75 of $2.00"]);
    assert_eq!(stage.invocations().len(), 2);
}

// proves: A48
#[test]
fn stop_keeps_client_with_unreadable_transcript_running() {
    let stage = stage("say almost");
    let running = stage.start_run("--budget 2");
    stage.reaches("gate");
    let client = stage.invocations()[1].pid;
    running.signal(Signal::KILL);
    running.wait();
    let transcript = stage.project.path(".raymond/runs/r/transcripts/main.2.1.1.jsonl");
    fs::rename(&transcript, stage.project.path("kept")).unwrap();
    fs::create_dir(&transcript).unwrap();
    let records = stage.project.records("r");
    stage.raymond("stop r").mentions(7, &["could not read the transcript "]);
    assert!(stage.is_ours(client), "the client still runs");
    assert_eq!(stage.project.records("r"), records, "nothing is recorded");
    fs::remove_dir(&transcript).unwrap();
    fs::rename(stage.project.path("kept"), transcript).unwrap();
    stage.raymond("stop r").mentions(0, &["r: stopped"]);
    assert!(!stage.is_ours(client), "the client is ended");
}

#[test]
fn run_with_unreadable_transcript_can_be_cancelled() {
    let stage = unreadable();
    stage.raymond("cancel r").mentions(0, &["r: cancelled"]);
    let last: &(String, u64, String) = &stage.charges()[1];
    assert!(last.1 > 0 || last.2 == "unpriced", "{last:?}");
    let events: Vec<Value> = stage.project.events("r", "turn_interrupted");
    assert_eq!(events.len(), 1);
}

/// Passes on so many lines of the client, and fails at the next one. Later clients find room.
const WRITES: &str = r#"#!/bin/bash
if [[ $1 == --version || -e $CLAUDE_CONFIG_DIR/room ]]; then exec CLIENT "$@"; fi
touch "$CLAUDE_CONFIG_DIR/room"
CLIENT "$@" | {
    for ((line = 0; line < WRITTEN; line++)); do IFS= read -r text && printf '%s\n' "$text"; done
    cat > "$CLAUDE_CONFIG_DIR/lost"
    echo 'Error: ENOSPC: no space left on device, write' >&2
}
exit 1
"#;

// proves: A3
#[test]
fn failed_write_of_any_line_is_charged() {
    let lines = "fake: cost 0.5\nfake: say one\nfake: say <result>done</result>";
    // The client writes four lines: its model, two messages and the result.
    for written in 0..4 {
        let stage = Stage::prompts(&[("START", lines)]);
        let program = WRITES.replace("CLIENT", client().to_str().unwrap());
        stage.project.write("client", program.replace("WRITTEN", &written.to_string()));
        let path = stage.project.path("client");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        stage.configure(&format!("claude = {path:?}\n"));
        stage.run("--budget 2").mentions(7, &["ENOSPC: no space left on device"]);
        assert_eq!(stage.failures(), ["environment"], "{written} lines");
        let (_, amount, basis) = stage.charges()[0].clone();
        assert!(amount > 0 || basis == "unpriced", "{written} lines: {amount} {basis}");
        assert_eq!(stage.invocations().len(), 1, "{written} lines");
        stage.raymond("resume r").prints("done\n");
    }
}

#[test]
fn strict_budget_charges_full_share_for_unknown_cost() {
    in_private("disks::strict_budget_charges_full_share_for_unknown_cost", || {
        let stage = stage("flood 8000000");
        on_small_disk(&stage);
        let running = stage.start_run("--budget 2 --strict-budget");
        stage.reaches("gate");
        let client = stage.invocations()[1].pid;
        running.signal(Signal::KILL);
        running.wait();
        fill(&stage);
        stage.opens("gate");
        until("it has died", || !stage.is_ours(client));
        stage.raymond("resume r").mentions(5, &["over_budget: $2.00 of the $2.00 cap is spent"]);
        assert_eq!(charged(&stage), 2_000_000, "{:?}", stage.charges());
        assert_eq!(stage.invocations().len(), 2);
    });
}
