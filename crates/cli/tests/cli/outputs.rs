//! Scripts that print too much or invalid text, or leave processes running.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{Project, until};

#[test]
fn ten_megabytes_pass_through_a_call() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<call return=\"BACK\">SUB</call>'"),
        (
            "wf/SUB.sh",
            "printf '<result>'; head -c 10000000 /dev/zero | tr '\\0' x; printf '</result>'",
        ),
        ("wf/BACK.sh", "printf '<result>'; cat \"$RAYMOND_RESULT_FILE\"; printf '</result>'"),
    ]);
    let output = project.raymond("run wf --run-id r");
    output.mentions(0, &[]);
    let shown = project.raymond("show");
    assert!(shown.stdout.contains("ended: (10000000 bytes)"), "{shown:?}");
    assert_eq!(output.stdout, "x".repeat(10_000_000) + "\n");
    assert!(project.read(".raymond/runs/r/journal.jsonl").len() < 20_000, "it holds no megabytes");
    assert!(project.state("r")["results"]["main"]["blob"].is_string());
    assert_eq!(project.raymond("resume r").stdout.len(), 10_000_001);
}

// proves: S25
#[test]
fn output_flood_ends_the_script_in_bounded_memory() {
    let project = Project::of(&[("wf/START.sh", "yes | head -c 1G; touch too-far; sleep 300")]);
    let mut running = project.start("run wf --run-id r");
    let status = format!("/proc/{}/status", running.pid());
    let mut peak = 0;
    while running.is_alive() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0));
    }
    running.wait().mentions(1, &["START.sh: failed: output too large: more than 64 MiB\n"]);
    assert!((64 * 1024..200 * 1024).contains(&peak), "{peak} KiB at most");
    assert!(!project.path("too-far").exists());
    assert_eq!(project.processes("r"), [0; 0]);
    let next = "→ first fix START.sh or what it needs, then: raymond resume r --with-current\n";
    assert!(project.raymond("why r").stdout.ends_with(next));
}

#[test]
fn script_without_its_interpreter_must_be_fixed() {
    let project = Project::of(&[("wf/START.sh", "#!/no/such/interpreter\n")]);
    let executable = Permissions::from_mode(0o755);
    fs::set_permissions(project.path("wf/START.sh"), executable).unwrap();
    project.raymond("run wf --run-id r").mentions(1, &["START.sh: failed: could not start: "]);
    let why = project.raymond("why r").stdout;
    let next = "→ first fix START.sh or what it needs, then: raymond resume r --with-current\n";
    assert!(why.ends_with(next), "{why}");
    project.write("wf/START.sh", "#!/bin/sh\necho '<result>ok</result>'\n");
    project.raymond("resume r --with-current --quiet").prints("ok\n");
}

#[test]
fn binary_garbage_is_replaced_with_a_warning() {
    let noise = "head -c 100000 /dev/urandom | tr -d '<'; printf '\\xff'";
    let project = Project::of(&[("wf/START.sh", &format!("{noise}; echo '<result>ok</result>'"))]);
    project
        .raymond("run wf")
        .prints("ok\n")
        .mentions(0, &["main             the output was not UTF-8; bad bytes were replaced\n"]);
    project.write("wf/START.sh", noise);
    project
        .raymond("run wf")
        .prints("")
        .mentions(1, &["START.sh: failed: no tag: the output ends with "]);
}

#[test]
fn daemon_lives_until_its_run_ends() {
    let project = Project::of(&[
        ("wf/START.sh", "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo '<goto>NEXT</goto>'"),
        ("wf/NEXT.sh", "until test -e quick; do sleep 0.01; done; echo '<result>x</result>'"),
    ]);
    let running = project.start("run wf --run-id r");
    let is_daemon = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.starts_with(b"sleep\x001000\0")
    };
    until("the second state runs", || project.events("r", "visit_entered").len() == 2);
    until("the daemon is there", || {
        project.processes("r").iter().filter(|p| is_daemon(p)).count() == 1
    });
    project.write("quick", "");
    running.wait().mentions(0, &[]);
    assert_eq!(project.processes("r"), [0; 0]);
}

#[test]
fn child_keeping_stdout_open_does_not_block_run() {
    let project = Project::of(&[("wf/START.sh", "sleep 1000 & echo '<result>x</result>'")]);
    project.raymond("run wf --run-id r").prints("x\n").mentions(0, &[]);
    assert_eq!(project.processes("r"), [0; 0]);
}
