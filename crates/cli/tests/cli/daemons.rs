//! Processes that a turn leaves behind end with the run; suspended runs.

use std::path::Path;

use rustix::process::Signal;

use crate::harness::{Project, until};

/// Whether there is such a process.
fn lives(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

/// A daemon without the group, the parent and the environment of its run.
const HIDDEN: &str = "\
env -i setsid sleep 301 < /dev/null > /dev/null 2>&1 &
echo $! > daemon
echo '<goto>HOLD</goto>'
";
const HOLD: &str = "touch held; read < go; echo '<result>done</result>'";

fn with_a_hidden_daemon() -> Project {
    let project = Project::of(&[("wf/START.sh", HIDDEN), ("wf/HOLD.sh", HOLD)]);
    assert_eq!(project.spawn("mkfifo", &["go"]).wait().code(), 0);
    project
}

// proves: S38
#[test]
fn hidden_daemon_is_shown_and_ends_with_run() {
    let project = with_a_hidden_daemon();
    let running = project.start("run wf --run-id r");
    until("the second state runs", || project.path("held").exists());
    let daemon = project.read("daemon");
    let seen = project.raymond("status r");
    assert!(seen.stdout.contains("left running: sleep 301\n"), "{seen:?}");
    assert!(!seen.stdout.contains("HOLD.sh\n  left"), "{seen:?}");
    assert!(lives(&daemon));
    project.write("go", "\n");
    running.wait().mentions(0, &["completed"]);
    assert!(!lives(&daemon), "it outlived its run");
}

#[test]
fn hidden_daemon_ends_when_run_is_stopped() {
    let project = with_a_hidden_daemon();
    let running = project.start("run wf --run-id r");
    until("the second state runs", || project.path("held").exists());
    let daemon = project.read("daemon");
    project.raymond("stop r").mentions(0, &["stopped"]);
    assert_eq!(running.wait().code(), 130);
    assert!(!lives(&daemon), "it outlived its run");
}

/// A daemon that only SIGKILL ends.
const STUBBORN: &str = "\
setsid bash -c 'trap \"\" INT TERM HUP; while :; do sleep 0.1; done' < /dev/null > /dev/null 2>&1 &
";

/// A run whose owner was killed between its last record and the end of its daemon.
fn ended_with_a_daemon(tag: &str, ends: impl FnOnce(&Project)) -> Project {
    let start = format!("{STUBBORN}echo '{tag}'");
    let project = Project::of(&[("wf/START.sh", &start), ("wf/HOLD.sh", "touch held; sleep 301")]);
    let running = project.start("run wf --run-id r");
    ends(&project);
    until("its end is recorded", || !project.events("r", "run_ended").is_empty());
    running.signal(Signal::KILL);
    running.wait();
    assert!(!project.processes("r").is_empty(), "the owner was too quick");
    project
}

fn completed_with_a_daemon() -> Project {
    ended_with_a_daemon("<result>done</result>", |_| {})
}

const ENDED: &str = "raymond: ended a leftover process: bash -c trap";

// proves: P6
#[test]
fn leftovers_of_completed_run_are_ended() {
    for (command, code) in [("stop r", 2), ("cancel r", 2), ("resume r", 0)] {
        let project = completed_with_a_daemon();
        for look in ["resume r --plan", "status r"] {
            project.raymond(look).mentions(0, &[]);
        }
        assert!(!project.processes("r").is_empty(), "looking ends nothing");
        project.raymond(command).mentions(code, &[ENDED, "completed"]);
        assert_eq!(project.processes("r"), [0; 0], "{command}");
    }
}

#[test]
fn leftovers_of_stopped_run_are_ended() {
    for (verb, status) in [("stop", "stopped"), ("cancel", "cancelled")] {
        let project = ended_with_a_daemon("<goto>HOLD</goto>", |project| {
            until("the second state runs", || project.path("held").exists());
            let asked = project.start(&format!("{verb} r"));
            until("its end is recorded", || !project.events("r", "run_ended").is_empty());
            asked.signal(Signal::KILL);
            asked.wait();
        });
        let hint = if verb == "stop" { "raymond stop r" } else { "raymond doctor --fix" };
        project.raymond("prune r").mentions(2, &["processes of r still run", hint]);
        project.raymond(&format!("{verb} r")).mentions(0, &[ENDED, &format!("r: {status}")]);
        assert_eq!(project.processes("r"), [0; 0], "{verb}");
        project.raymond("prune r").mentions(0, &["deleted 1 run"]);
    }
}

/// A script that ends slowly, unless an earlier instance has started.
const SLOW_TO_END: &str = "\
if test -e first; then
  grep -q . /proc/$(cat first)/cmdline 2> /dev/null && touch together
  echo '<result>done</result>'
  exit
fi
trap 'sleep 0.3; exit 1' INT TERM
echo $$ > pid; mv pid first
while :; do sleep 0.01; done
";

// proves: P6
#[test]
fn leftover_script_ends_before_it_is_repeated() {
    // After a rewind, the marker of the process names a turn that the run no longer has.
    for resume in ["resume r", "resume r --truncate-to 1"] {
        let project = Project::of(&[("wf/START.sh", SLOW_TO_END)]);
        let running = project.start("run wf --run-id r");
        until("the script runs", || project.path("first").exists());
        running.signal(Signal::KILL);
        running.wait();
        assert!(lives(&project.read("first")));
        project.raymond(resume).prints("done\n").mentions(0, &["ended a leftover process"]);
        assert!(!project.path("together").exists(), "both ran at the same time");
    }
}

#[test]
fn suspended_run_continues() {
    let hold = "touch held; read < go; echo '<result>done</result>'; touch said";
    let project = Project::of(&[("wf/START.sh", hold)]);
    assert_eq!(project.spawn("mkfifo", &["go"]).wait().code(), 0);
    let running = project.start("run wf --run-id r --idle-timeout 60s");
    until("the state runs", || project.path("held").exists());
    running.signal(Signal::STOP);
    project.write("go", "\n");
    until("its script is done", || project.path("said").exists());
    running.signal(Signal::CONT);
    running.wait().mentions(0, &["completed"]).prints("done\n");
}
