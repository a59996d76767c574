//! A journal with valid checksums that an attacker wrote. Checksums detect damage, not malice:
//! everyone who knows the format can compute them.

use std::fs;
use std::os::unix::fs::symlink;

use super::{LOOKS, everything, forge};
use crate::harness::Project;

/// A failed run, and a folder beside the project's that nothing may reach.
fn failed(script: &str) -> Project {
    let project = Project::of(&[("wf/START.sh", script)]);
    assert_eq!(project.raymond("run wf --run-id r").code(), 1);
    project
}

// proves: P12, S15
#[test]
fn forged_names_in_journals_never_become_paths() {
    let check = |change: fn(String) -> String, message: &str| {
        let project = failed("exit 1");
        forge(&project, change);
        let before = everything(&project.root());
        for command in
            LOOKS.into_iter().chain(["resume r", "resume r --with-current", "stop r", "cancel r"])
        {
            let output = project.raymond(command);
            assert!(output.status.code().is_some(), "{command}: {output:?}");
        }
        project.raymond("resume r").prints("").mentions(7, &[message]);
        assert_eq!(everything(&project.root()), before);
    };
    let agent = |line: String| line.replace("\"main", "\"../../../../main");
    check(agent, "cannot be a name");
    let state = |line: String| line.replace("START.sh", "../../START.sh");
    check(state, "cannot be");
    let run = |line: String| {
        if line.contains("\"format\"") { line } else { line.replace("\"r\"", "\"../../r\"") }
    };
    check(run, "cannot be a name");
    let other = |line: String| {
        let is_header = line.contains("\"format\"");
        if is_header { line } else { line.replace("\"run\":\"r\"", "\"run\":\"other run\"") }
    };
    check(other, "belongs to the run other run");
}

// proves: S16
#[test]
fn pinned_script_is_written_only_into_its_directory() {
    let project = failed("exit 1");
    fs::remove_dir_all(project.path("wf")).unwrap();
    forge(&project, |line| {
        line.replace("\\\"name\\\":\\\"START.sh\\\"", "\\\"name\\\":\\\"../../../../OUT.sh\\\"")
    });
    let output = project.raymond("resume r --pinned");
    assert_ne!(output.code(), 0, "{output:?}");
    assert!(!project.path("OUT.sh").exists() && !project.path("../OUT.sh").exists());
}

// proves: S16
#[test]
fn pinned_script_is_never_written_through_links() {
    let project = failed("exit 1");
    project.write("home/.bashrc", "precious");
    fs::remove_dir_all(project.path("wf")).unwrap();
    assert_eq!(project.raymond("resume r --pinned").code(), 1);
    let definition = fs::read_dir(project.path(".raymond/runs/r/definition")).unwrap();
    let folder = definition.map(|entry| entry.unwrap().path()).next().unwrap();
    fs::remove_file(folder.join("START.sh")).unwrap();
    symlink(project.path("home/.bashrc"), folder.join(".new")).unwrap();
    assert_eq!(project.raymond("resume r --pinned").code(), 1);
    assert_eq!(project.read("home/.bashrc"), "precious");
    let copy = folder.join("START.sh");
    assert!(!copy.is_symlink() && fs::read_to_string(copy).unwrap() == "exit 1");
}

// proves: S17
#[test]
fn replaced_blob_is_rejected() {
    let script = format!("# {}\nexit 1", "x".repeat(20_000));
    let project = failed(&script);
    let blobs = project.path(".raymond/runs/r/blobs");
    let blob = fs::read_dir(blobs).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&blob).unwrap();
    fs::write(&blob, text.replace("exit 1", "echo 1")).unwrap();
    project.raymond("resume r --pinned").prints("").mentions(7, &["is damaged"]);
    forge(&project, |line| line.replace("{\"blob\":\"", "{\"blob\":\"../"));
    project.raymond("resume r --pinned").prints("").mentions(7, &[]);
}

// proves: S20
#[test]
fn planted_requests_stop_nothing() {
    let project = failed("test -e ready && echo '<result>x</result>'");
    project.write("ready", "");
    let stop = r#"{"stop":{"mode":"cancel","key":"planted"}}"#;
    project.write(".raymond/runs/r/inbox/planted.json", stop);
    project.write(".raymond/runs/r/inbox/junk.json", "{");
    project.write(".raymond/state/r.json", r#"{"status":"cancelled"}"#);
    project.raymond("resume r").prints("x\n").mentions(0, &[]);
}
