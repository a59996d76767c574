//! With a small `ulimit -n` or `ulimit -u` a command works, or exits 7 with the reason. It never
//! panics.

use std::path::Path;

use rustix::process::geteuid;

use crate::harness::{Output, Project};

/// Below this the loader of the system cannot open the libraries of any program.
const LEAST: usize = 4;
const MOST: usize = 64;

/// Runs `raymond` with this limit on open files.
fn limited(project: &Project, limit: usize, words: &str) -> Output {
    let script = format!("ulimit -n {limit} && exec {} {words}", env!("CARGO_BIN_EXE_raymond"));
    project.spawn("bash", &["-c", &script]).wait()
}

/// Whether the command worked; otherwise checks that it reported too few files.
#[track_caller]
fn worked(limit: usize, words: &str, output: &Output) -> bool {
    worked_or("raymond: could not open enough files: ", limit, words, output)
}

#[track_caller]
fn worked_or(reason: &str, limit: usize, words: &str, output: &Output) -> bool {
    assert!(!output.stderr.contains("panicked"), "{words} with the limit {limit}: {output:?}");
    match output.code() {
        0 => true,
        7 => {
            let is_reported =
                [reason, "hint: raise the limit"].map(|part| output.stderr.contains(part));
            assert_eq!(is_reported, [true; 2], "{words} with the limit {limit}: {output:?}");
            false
        }
        _ => panic!("{words} with the limit {limit}: {output:?}"),
    }
}

fn project() -> Project {
    // It is there and has a version, so that only the limit can make `doctor` fail.
    let client = "#!/bin/sh\necho '99.0.0 (Claude Code)'\n";
    let project = Project::of(&[
        ("client", client),
        ("wf/START.md", "Do it."),
        ("wf/NEXT.sh", "echo '<result>done</result>'"),
        ("replies.yaml", "START: { text: <goto>NEXT</goto>, cost: 0.1 }"),
    ]);
    let path = project.path("client");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, executable).unwrap();
    project.with("RAYMOND_CLAUDE", path.display().to_string())
}

// proves: A22
#[test]
fn run_works_or_leaves_nothing_behind() {
    let project = project();
    let run = |limit| {
        let words = format!("run wf --replies replies.yaml --run-id r{limit} --quiet");
        let output = limited(&project, limit, &words);
        if worked(limit, &words, &output) {
            output.prints("done\n");
            return true;
        }
        assert!(!project.path(&format!(".raymond/runs/r{limit}")).exists());
        false
    };
    let enough = (LEAST..=MOST).filter(|limit| run(*limit)).count();
    assert!(enough > 0 && !run(LEAST), "the limits show both");
}

#[test]
fn run_needs_files_for_all_parallel_programs() {
    let forks = "<fork next='END'>WORKER</fork>".repeat(60);
    let project = Project::of(&[
        ("wf/START.sh", &format!("echo \"{forks}\"")),
        ("wf/WORKER.sh", "sleep 0.2; echo '<result>x</result>'"),
        ("wf/END.sh", "echo '<result>done</result>'"),
    ]);
    let refused = limited(&project, 64, "run wf --run-id r --max-parallel 60");
    refused.mentions(
        7,
        &["could not open enough files: 60 parallel programs need 340", "--max-parallel 4"],
    );
    assert!(!project.path(".raymond/runs/r").exists());
    limited(&project, 64, "run wf --run-id r --max-parallel 4").prints("done\n");
    // A soft limit is raised.
    let script =
        format!("ulimit -Sn 64 && exec {} run wf --max-parallel 60", env!("CARGO_BIN_EXE_raymond"));
    project.spawn("bash", &["-c", &script]).wait().prints("done\n");
}

#[test]
fn interrupted_run_is_resumed_once_files_suffice() {
    let script = "test -e quick || exit 3; echo '<result>done</result>'";
    let project = Project::of(&[("wf/START.sh", script)]);
    assert_eq!(project.raymond("run wf --run-id r").code(), 1);
    project.write("quick", "");
    let resume = |limit| worked(limit, "resume", &limited(&project, limit, "resume r"));
    let first = (LEAST..=MOST).find(|limit| resume(*limit));
    assert!(first.is_some_and(|limit| limit > LEAST), "{first:?}");
    project.raymond("resume r").prints("done\n");
}

#[test]
fn other_commands_work_or_give_the_reason() {
    let project = project();
    project.raymond("run wf --replies replies.yaml --run-id r").prints("done\n");
    for words in ["status r", "doctor", "mcp", "stop r", "wait r"] {
        let works = |limit: &usize| match limited(&project, *limit, words) {
            // It had completed.
            output if words == "stop r" && output.code() == 2 => true,
            output => worked(*limit, words, &output),
        };
        assert!((LEAST..=MOST).filter(works).count() > 0, "{words} never works");
    }
    assert!(Path::new(&project.path(".raymond/runs/r/journal.jsonl")).exists());
}

/// The limit does not bind root, so another user runs the commands; only root may become one.
#[test]
fn few_threads_are_rejected_with_the_reason() {
    /// No other process has this user id, so no other process counts.
    const USER: u32 = 64_123;
    let project = project();
    if !geteuid().is_root() {
        println!("not run: only root may run commands as another user");
        return;
    }
    let program = project.path("raymond");
    let built = Path::new(env!("CARGO_BIN_EXE_raymond"));
    std::fs::hard_link(built, &program)
        .or_else(|_| std::fs::copy(built, &program).map(drop))
        .unwrap();
    let user = Some(USER);
    std::os::unix::fs::chown(project.root(), user, None).unwrap();
    for words in ["run wf --replies replies.yaml --run-id r --or-resume", "mcp", "doctor"] {
        let works = |limit: &usize| {
            let script = format!(
                "exec setpriv --reuid {USER} --clear-groups prlimit --nproc={limit} {} {words}",
                program.display()
            );
            let output = project.spawn("bash", &["-c", &script]).wait();
            worked_or("raymond: could not start a thread: ", *limit, words, &output)
        };
        let working: Vec<usize> = (1..=8).filter(works).collect();
        assert!(!working.is_empty() && !working.contains(&1), "{words}: {working:?}");
    }
}
