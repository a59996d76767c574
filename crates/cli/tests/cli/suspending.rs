//! An owner that is suspended: Ctrl-Z, or SIGSTOP.

use rustix::process::Signal;

use crate::harness::{Project, Running, until};

/// A project with a run `r`, whose script waits until the file `quick` exists, or the project is
/// gone.
fn begun() -> (Project, Running) {
    let script = "echo x >> log; while test -e log -a ! -e quick; do sleep 0.01; done; echo '<result>done</result>'";
    let project = Project::of(&[("wf/START.sh", script)]);
    let running = project.start("run wf --run-id r");
    until("the script runs", || !project.read("log").is_empty());
    (project, running)
}

/// A run whose owner is suspended.
fn suspended() -> (Project, Running) {
    let (project, running) = begun();
    suspend(&running);
    (project, running)
}

fn suspend(running: &Running) {
    running.signal(Signal::STOP);
    let stat = format!("/proc/{}/stat", running.pid());
    until("it is suspended", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
}

fn requests(project: &Project) -> usize {
    std::fs::read_dir(project.path(".raymond/runs/r/inbox")).unwrap().count()
}

fn refusal(verb: &str, pid: u32) -> String {
    format!(
        "raymond: could not {verb} r: its owner, process {pid}, is suspended
        hint: continue the owner with `kill -CONT {pid}`, or `fg` in its terminal; the owner then ends the run"
    )
}

// proves: A17
#[test]
fn stop_and_cancel_leave_suspended_owner_a_request() {
    for (verb, status, code) in [("stop", "stopped", 130), ("cancel", "cancelled", 8)] {
        let (project, running) = suspended();
        project.raymond(&format!("{verb} r")).says(6, &refusal(verb, running.pid()));
        assert_eq!(requests(&project), 1);
        running.signal(Signal::CONT);
        running.wait().mentions(code, &[&format!("\n{status}: ")]);
        assert_eq!(project.state("r")["status"], status);
        assert_eq!((requests(&project), project.processes("r")), (0, Vec::new()));
    }
}

#[test]
fn owner_suspended_during_stop_is_noticed() {
    let (project, running) = begun();
    let stop = project.start("stop r --after-turn");
    until("it is asked", || !project.events("r", "stop_requested").is_empty());
    suspend(&running);
    stop.wait().says(6, &refusal("stop", running.pid()));
    project.write("quick", "");
    running.signal(Signal::CONT);
    running.wait().prints("done\n").mentions(0, &[]);
}

#[test]
fn request_to_suspended_owner_dies_with_it() {
    let (project, running) = suspended();
    project.raymond("stop r").mentions(6, &["is suspended"]);
    running.signal(Signal::KILL);
    running.wait();
    project.write("quick", "");
    project.raymond("resume r").prints("done\n").mentions(0, &[]);
}

#[test]
fn suspended_owner_is_named_wherever_run_is_shown() {
    let (project, running) = suspended();
    let pid = running.pid();
    let why = format!("main is in turn 1 of START.sh; its owner, process {pid}, is suspended");
    project.raymond("why r").prints(&format!("running: {why}\n→ kill -CONT {pid}\n"));
    let shown = project.raymond("status r").stdout;
    assert!(shown.starts_with(&format!("r  running\n  {why}\n  → kill -CONT {pid}\n")), "{shown}");
    let object = project.raymond("status r --json").json();
    assert_eq!((&object["why"], &object["status"]), (&why.into(), &"running".into()));
    let listed = project.raymond("list").stdout;
    assert!(listed.ends_with(&format!("its owner, process {pid}, is suspended\n")), "{listed}");
    project.raymond("resume r").mentions(6, &["which is suspended", &format!("kill -CONT {pid}")]);
    running.signal(Signal::CONT);
    until("it continues", || !project.raymond("list").stdout.contains("suspended"));
    assert!(!project.raymond("why r").stdout.contains("suspended"));
    project.raymond("stop r").says(0, "r: stopped");
}

#[test]
fn waiting_commands_mention_suspended_owner_once() {
    let (project, running) = suspended();
    let pid = running.pid();
    let hint = format!(
        "is suspended; continue the owner with `kill -CONT {pid}`, or `fg` in its terminal"
    );
    let waiting = ["wait r", "attach r"].map(|words| project.start(words));
    for one in &waiting {
        until("it is mentioned", || one.stderr_contains(&hint));
    }
    project.write("quick", "");
    running.signal(Signal::CONT);
    for one in waiting {
        let output = one.wait();
        assert_eq!((output.code(), output.stderr.matches(&hint).count()), (0, 1), "{output:?}");
    }
}
