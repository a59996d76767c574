//! Leftovers of a killed stateless call, and `doctor --fix`.
//!
//! Every call ends the processes of killed calls of its user, so a test that runs beside these may
//! end them first. Only `doctor --fix` removes files.

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Project, Running, until};

/// A project with a temporary directory of its own.
fn project() -> Project {
    let project = Project::of(&[("tmp/keep", "")]);
    let directory = project.path("tmp").display().to_string();
    project.with("TMPDIR", directory)
}

/// Starts a call without a `runId`, whose step never ends, and whose text is too long for an
/// argument.
fn started(project: &Project) -> Running {
    let text = format!(": {}\necho $$ > pid; touch started; sleep 600", "x".repeat(200_000));
    let steps = json!([{ "id": "a", "kind": "exec", "shell": text }]);
    let request = json!({ "action": "run", "workflow": { "steps": steps } });
    let running = project.start_sending(request.to_string(), "crayfish");
    until("the step has started", || project.path("started").exists());
    running
}

fn killed(project: &Project) {
    let running = started(project);
    running.signal(Signal::KILL);
    running.wait();
}

fn has_ended(project: &Project) -> bool {
    let pid = project.read("pid");
    !std::path::Path::new("/proc").join(pid.trim()).join("cmdline").exists()
}

fn scratch_files(project: &Project) -> usize {
    let names = std::fs::read_dir(project.path("tmp")).unwrap().flatten();
    names.filter(|entry| entry.file_name().to_string_lossy().starts_with("raymond-step-")).count()
}

// proves: A20
#[test]
fn doctor_removes_remains_of_killed_call() {
    let project = project();
    killed(&project);
    assert_eq!(scratch_files(&project), 1);
    let seen = project.raymond("doctor").stdout;
    assert!(seen.contains("1 file of killed `raymond crayfish` calls: /"), "{seen}");
    let fixed = project.raymond("doctor --fix").stderr;
    assert!(fixed.ends_with("removed 1 file of killed `raymond crayfish` calls\n"), "{fixed}");
    until("its step has ended", || has_ended(&project));
    assert_eq!(scratch_files(&project), 0);
    let seen = project.raymond("doctor").stdout;
    assert!(!seen.contains("killed"), "{seen}");
}

#[test]
fn doctor_leaves_living_call_alone() {
    let project = project();
    let running = started(&project);
    let seen = project.raymond("doctor --fix");
    assert!(!seen.stdout.contains("killed") && !seen.stderr.contains("killed"), "{seen:?}");
    assert_eq!((scratch_files(&project), has_ended(&project)), (1, false));
    running.signal(Signal::TERM);
    running.wait();
    assert_eq!((scratch_files(&project), has_ended(&project)), (0, true));
}

#[test]
fn doctor_leaves_other_project_alone() {
    let theirs = project();
    killed(&theirs);
    let ours = Project::of(&[]).with("TMPDIR", theirs.path("tmp").display().to_string());
    let seen = ours.raymond("doctor --fix");
    assert!(!seen.stdout.contains("killed") && !seen.stderr.contains("killed"), "{seen:?}");
    assert_eq!(scratch_files(&theirs), 1);
    theirs.raymond("doctor --fix");
    assert_eq!(scratch_files(&theirs), 0);
    until("its step has ended", || has_ended(&theirs));
}
