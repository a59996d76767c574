//! Runs in the background, and following them.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Project, until};

/// A run whose second state waits for the file `go`.
fn gated() -> Project {
    Project::of(&[
        ("wf/START.sh", "echo '<goto>WAIT</goto>'"),
        (
            "wf/WAIT.sh",
            "until test -e go; do test -d $PWD || exit 1; sleep 0.01; done; echo '<result>done</result>'",
        ),
    ])
}

fn is_waiting(project: &Project, run: &str) -> bool {
    project.events(run, "visit_entered").len() == 2
}

/// The process that drives a run.
fn owner(project: &Project, run: &str) -> Option<u32> {
    let status = project.raymond(&format!("status {run}")).stdout;
    let line = status.lines().find_map(|line| line.trim().strip_prefix("owner: process "))?;
    line.split(' ').next()?.parse().ok()
}

/// The session that a process belongs to.
fn session(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let behind = stat.rsplit_once(") ").unwrap().1.to_owned();
    behind.split(' ').nth(3).unwrap().to_owned()
}

#[test]
fn attach_follows_until_the_run_ends() {
    let project = gated();
    let running = project.start("run wf --run-id r");
    until("it waits", || is_waiting(&project, "r"));
    let attached = project.start("attach r");
    until("it is attached", || {
        attached.stderr_contains("r: running: main is in turn 1 of WAIT.sh")
    });
    project.write("go", "");
    attached.wait().prints("done\n").says(
        0,
        "r: running: main is in turn 1 of WAIT.sh
        main             ended
        completed: main ended with a result
        path     START → WAIT
        look     raymond show r · raymond logs r
        spent $0.00 of $10.00",
    );
    running.wait().prints("done\n");
    // Afterwards there is nothing left to follow.
    project.raymond("attach r").prints("done\n").says(
        0,
        "completed: main ended with a result
        path     START → WAIT
        look     raymond show r · raymond logs r
        spent $0.00 of $10.00",
    );
    let object = project.raymond("attach r --json -q").json();
    assert_eq!(
        (&object["status"], &object["results"]),
        (&json!("completed"), &json!({ "main": "done" }))
    );
}

#[test]
fn leaving_an_attached_run_leaves_it_alone() {
    let project = gated();
    let mut running = project.start("run wf --run-id r");
    until("it waits", || is_waiting(&project, "r"));
    let attached = project.start("attach r");
    until("it is attached", || attached.stderr_contains("r: running"));
    attached.signal(Signal::INT);
    attached
        .wait()
        .prints("")
        .mentions(130, &["r continues without being watched; to stop it: raymond stop r"]);
    assert!(running.is_alive());
    project.write("go", "");
    running.wait().prints("done\n");
}

#[test]
fn attach_exits_with_the_code_of_the_run() {
    let project = gated();
    let running = project.start("run wf --run-id r");
    until("it waits", || is_waiting(&project, "r"));
    let attached = project.start("attach r");
    until("it is attached", || attached.stderr_contains("r: running"));
    running.signal(Signal::KILL);
    running.wait();
    attached.wait().mentions(130, &["interrupted: its owner died", "raymond resume r"]);
    project.write("bad/START.sh", "exit 1");
    project.raymond("run bad --run-id b");
    project.raymond("attach b").mentions(1, &["failed: main failed at START.sh"]);
    project.raymond("attach nobody").mentions(2, &["there is no run \"nobody\""]);
    project.raymond("cancel r").mentions(0, &[]);
}

#[test]
fn detached_run_prints_its_id_and_continues_alone() {
    let project = gated().with("RAYMOND_TURN", "0123456789abcdef0123456789abcdef/main.1.1");
    let output = project.raymond("run wf -d");
    let run = output.stdout.trim().to_owned();
    output.says(0, &format!("{run} runs in the background; to follow it: raymond attach {run}"));
    assert!(run.starts_with("wf-"), "{run}");
    until("it waits", || is_waiting(&project, &run));
    let owner = owner(&project, &run).unwrap();
    assert_eq!(session(owner), owner.to_string(), "it leads a session of its own");
    let environment = fs::read(format!("/proc/{owner}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("0123456789abcdef"), "no marker");
    project.write("go", "");
    project.raymond(&format!("wait {run}")).mentions(0, &[]);
    until("its result is there", || {
        project.read(&format!(".raymond/runs/{run}/console.log")).contains("done\n")
    });
    let log = project.read(&format!(".raymond/runs/{run}/console.log"));
    assert!(log.contains(&format!("{run}: cap $10.00")), "{log}");
    assert!(log.contains("START.sh → WAIT.sh (goto)"), "{log}");
}

#[test]
fn detached_run_that_fails_at_once_has_started() {
    let project = Project::of(&[("wf/START.sh", "exit 1")]);
    project.raymond("run wf --run-id r --detach -q").says(0, "").prints("r\n");
    project.raymond("wait r").mentions(1, &[]);
    assert_eq!(
        project.raymond("run wf --run-id s -d --json").says(0, "").json(),
        json!({ "version": 1, "run_id": "s" })
    );
    project.raymond("wait s").mentions(1, &[]);
}

#[test]
fn failed_background_start_leaves_nothing() {
    let project = gated();
    project.raymond("run nowhere -d").prints("").mentions(2, &["could not find nowhere"]);
    project.write("prompt/START.md", "go");
    project.raymond("run prompt -d --backend nobody").prints("").mentions(2, &["\"nobody\""]);
    assert!(!project.path(".raymond").exists());
    project.raymond("run wf --run-id r -d").prints("r\n");
    project
        .raymond("run wf --run-id r -d")
        .prints("")
        .mentions(2, &["hint: choose another --run-id, or follow it: raymond attach r"]);
    // Only the background process notices this mistake.
    project.raymond("resume r -d").prints("").mentions(6, &["raymond: r is driven by process "]);
    project.write("go", "");
    project.raymond("wait r").mentions(0, &[]);
    // Only the disk rejects this one.
    fs::create_dir_all(project.path(".raymond/runs/s/journal.jsonl")).unwrap();
    let refused = project.raymond("run wf --run-id s -d");
    assert_ne!(refused.code(), 0, "{refused:?}");
    refused.prints("");
    assert!(refused.stderr.contains("raymond: "), "{refused:?}");
}

#[test]
fn background_resume_continues() {
    let project = gated();
    let running = project.start("run wf --run-id r");
    until("it waits", || is_waiting(&project, "r"));
    running.signal(Signal::KILL);
    running.wait();
    project.raymond("resume @last -d").prints("r\n").mentions(0, &[]);
    assert_eq!(project.events("r", "run_resumed").len(), 1);
    project.write("go", "");
    project.raymond("attach r").prints("done\n").mentions(0, &[]);
    project.raymond("resume r -d").prints("done\n").mentions(0, &[]);
    project.raymond("run wf --run-id r --or-resume -d").prints("done\n").mentions(0, &[]);
}

#[test]
fn background_start_prints_the_id_despite_ctrl_c() {
    let project = Project::of(&[("wf/START.sh", "read -r < go")]);
    assert_eq!(project.spawn("mkfifo", &["go"]).wait().code(), 0);
    let running = project.start("run wf --run-id r -d");
    until("it is being started", || project.path(".raymond/runs/r").exists());
    running.signal(Signal::INT);
    let output = running.wait();
    assert_eq!(output.code(), 130, "{output:?}");
    output.prints("r\n").mentions(130, &["to stop it: raymond stop r"]);
    assert_eq!(project.raymond("cancel r").code(), 0);
}
