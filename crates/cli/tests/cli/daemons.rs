//! What a turn leaves behind lives until the run ends, and no longer; and a run that was suspended.

use std::path::Path;

use rustix::process::Signal;

use crate::harness::{Project, until};

/// Whether there is such a process.
fn lives(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

/// A daemon that left its group, its parent and its environment behind.
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

#[test]
fn a_daemon_that_hides_its_descent_is_shown_and_ends_with_its_run() {
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
fn a_daemon_that_hides_its_descent_ends_when_the_run_is_stopped() {
    let project = with_a_hidden_daemon();
    let running = project.start("run wf --run-id r");
    until("the second state runs", || project.path("held").exists());
    let daemon = project.read("daemon");
    project.raymond("stop r").mentions(0, &["stopped"]);
    assert_eq!(running.wait().code(), 130);
    assert!(!lives(&daemon), "it outlived its run");
}

/// It takes its time to end, unless it finds that it was begun before.
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

#[test]
fn a_script_that_was_left_has_ended_when_it_is_repeated() {
    // Cut away, it carries the mark of a future that the run does not know any more.
    for resume in ["resume r", "resume r --truncate-to 1"] {
        let project = Project::of(&[("wf/START.sh", SLOW_TO_END)]);
        let running = project.start("run wf --run-id r");
        until("the script runs", || project.path("first").exists());
        running.signal(Signal::KILL);
        running.wait();
        assert!(lives(&project.read("first")));
        project.raymond(resume).prints("done\n").mentions(0, &["ended a process that was left"]);
        assert!(!project.path("together").exists(), "both ran at the same time");
    }
}

#[test]
fn a_run_that_was_suspended_goes_on_where_it_was() {
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
