//! Disks that are full, read-only, or gone.

use std::fs;

use crate::harness::{Output, Project, until};
use crate::mounts::{in_private, mount};

/// Runs `raymond` in a folder of the project.
fn within(project: &Project, folder: &str, words: &str) -> Output {
    let line = format!("cd {folder} && {} {words}", env!("CARGO_BIN_EXE_raymond"));
    project.spawn("bash", &["-c", &line]).wait()
}

/// A project whose workflow fills the disk, and then gets a paid reply of this many bytes.
fn filled(bytes: usize) -> Project {
    let replies = format!(
        "START: {{ text: '<goto>FILL</goto>', cost: 0.1 }}
PAID: {{ text: '{}<goto>END</goto>', cost: 0.5 }}
END: '<result>saved</result>'
",
        "x".repeat(bytes)
    );
    Project::of(&[
        ("wf/START.md", "a"),
        ("wf/FILL.sh", "cat /dev/zero > fill 2>/dev/null; echo '<goto>PAID</goto>'"),
        ("wf/PAID.md", "b"),
        ("wf/END.md", "c"),
        ("replies.yaml", &replies),
    ])
}

#[test]
fn full_disk_does_not_lose_a_paid_outcome() {
    in_private("disks::full_disk_does_not_lose_a_paid_outcome", || {
        let project = filled(500_000);
        let tmpfs = ["-t", "tmpfs", "-o", "size=3m", "tmpfs"];
        mount(&project, "small", &tmpfs);
        let output = within(&project, "small", "run ../wf --replies ../replies.yaml --run-id r");
        output.prints("saved\n").mentions(0, &["PAID.md → END.md (goto) · $0.50"]);
        assert!(!project.path("small/.raymond/ballast").exists(), "it was given up");
    });
}

#[test]
fn full_disk_ends_the_run_until_resume() {
    in_private("disks::full_disk_ends_the_run_until_resume", || {
        let project = filled(2_000_000);
        let tmpfs = ["-t", "tmpfs", "-o", "size=5m", "tmpfs"];
        mount(&project, "small", &tmpfs);
        let output = within(&project, "small", "run ../wf --replies ../replies.yaml --run-id r");
        assert_eq!(output.code(), 7, "{output:?}");
        let end: Vec<&str> = output.stderr.lines().rev().take(3).collect();
        assert!(
            end[2].starts_with("raymond: could not write /project/small/.raymond/runs/r/blobs/"),
            "{output:?}"
        );
        assert!(end[2].ends_with(": the disk is full"));
        assert_eq!(end[1], "hint: free some space");
        assert_eq!(end[0], "the records are safe; to continue: raymond resume r");
        fs::remove_file(project.path("small/fill")).unwrap();
        within(&project, "small", "resume r")
            .prints("saved\n")
            .mentions(0, &["r: reused 2 turns ($0.10), continuing 1, repeating 0\n"]);
    });
}

/// A project whose `.raymond/` is a small disk, with an ended run `r`, and with a
/// script that fills the disk to its last byte.
fn over_on_a_full_disk(script: &str) -> Project {
    let project = Project::of(&[("wf/START.sh", script)]);
    mount(&project, ".raymond", &["-t", "tmpfs", "-o", "size=3m", "tmpfs"]);
    project.raymond("run wf --run-id r");
    let fill = "cat /dev/zero > .raymond/fill; echo x >> .raymond/fill";
    assert_ne!(project.spawn("bash", &["-c", fill]).wait().code(), 0);
    project
}

// proves: A42
#[test]
fn prune_deletes_a_run_on_a_full_disk() {
    in_private("disks::prune_deletes_a_run_on_a_full_disk", || {
        let project = over_on_a_full_disk("echo '<result>x</result>'");
        project.raymond("prune r").mentions(0, &["deleted 1 run, freed "]);
        assert!(!project.path(".raymond/runs/r").exists());
        assert!(project.path(".raymond/ballast").exists(), "it is kept for outcomes");
    });
}

#[test]
fn cancel_works_without_owner_on_a_full_disk() {
    in_private("disks::cancel_works_without_owner_on_a_full_disk", || {
        let project = over_on_a_full_disk("exit 1");
        project.raymond("cancel r").mentions(0, &["r: cancelled"]);
    });
}

#[test]
fn read_only_directory_can_still_be_inspected() {
    in_private("disks::read_only_directory_can_still_be_inspected", || {
        let project = Project::of(&[("place/wf/START.sh", "echo '<result>x</result>'")]);
        within(&project, "place", "run wf --run-id old").prints("x\n");
        let place = project.path("place");
        mount(&project, "place", &["--bind", place.to_str().unwrap()]);
        let remount = ["-o", "remount,ro,bind", place.to_str().unwrap()];
        assert_eq!(project.spawn("mount", &remount).wait().code(), 0);
        within(&project, "place", "run wf --run-id new").prints("").says(
            7,
            "raymond: could not create the directory /project/place/.raymond/runs/new: the file system is read-only
            hint: Raymond stores runs in .raymond/: use a directory where it can write",
        );
        within(&project, "place", "resume old").prints("x\n");
        let seen = within(&project, "place", "status old");
        assert!(seen.stdout.starts_with("old  completed\n"), "{seen:?}");
    });
}

#[test]
fn unwritable_directory_is_named() {
    let project = Project::of(&[("place/wf/START.sh", "echo '<result>x</result>'")]);
    let binary = project.path("raymond");
    fs::copy(env!("CARGO_BIN_EXE_raymond"), &binary).unwrap();
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(project.root(), mode(0o755)).unwrap();
    fs::set_permissions(project.path("place"), mode(0o555)).unwrap();
    let line = format!("cd place && {} run wf", binary.display());
    let unprivileged = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    let line = if rustix::process::geteuid().is_root() {
        format!("{unprivileged} bash -c '{line}'")
    } else {
        line
    };
    let output = project.spawn("bash", &["-c", &line]).wait();
    if output.code() == 127 {
        println!("skipped: {}", output.stderr);
        return;
    }
    output.says(
        7,
        "raymond: could not create the directory /project/place/.raymond: permission denied
        hint: Raymond stores runs in .raymond/: use a directory where it can write",
    );
}

#[test]
fn vanished_directory_is_written_again() {
    let large = format!("# {}\n", "x".repeat(20_000));
    let project = Project::of(&[
        (
            "wf/START.sh",
            "touch begun; until test -e quick; do sleep 0.01; done; echo '<goto>NEXT</goto>'",
        ),
        ("wf/NEXT.sh", &format!("{large}test -e ready && echo '<result>x</result>'")),
    ]);
    let running = project.start("run wf --run-id r");
    // From then on the run writes nothing until the script ends.
    until("the script runs", || project.path("begun").exists());
    fs::remove_dir_all(project.path(".raymond")).unwrap();
    until("it is back", || project.path(".raymond/state/r.json").exists());
    project.raymond("resume r").mentions(6, &["r is driven by process"]);
    project.write("quick", "");
    running.wait().mentions(
        1,
        &["raymond: the directory of the run had vanished; Raymond wrote the journal, the lock and the states again"],
    );
    assert_eq!(project.read(".raymond/.gitignore"), "*\n");
    project.write("ready", "");
    project.raymond("resume r").prints("x\n").mentions(0, &["reused 1 turn"]);
}

#[test]
fn late_vanished_directory_is_written_again() {
    let project = Project::of(&[("wf/START.sh", "rm -r .raymond; echo '<result>x</result>'")]);
    project.raymond("run wf --run-id r").prints("x\n").mentions(0, &["had vanished"]);
    project.raymond("resume r").prints("x\n");
}

#[test]
fn replaced_journal_is_not_written_to() {
    let project = Project::of(&[(
        "wf/START.sh",
        "rm .raymond/runs/r/journal.jsonl; echo other > .raymond/runs/r/journal.jsonl; sleep 300",
    )]);
    project.raymond("run wf --run-id r").mentions(
        7,
        &["raymond: another file has replaced the journal /project/.raymond/runs/r/journal.jsonl"],
    );
    assert_eq!(project.read(".raymond/runs/r/journal.jsonl"), "other\n");
}

// proves: A26
#[test]
fn failed_copy_of_script_fails_no_agent() {
    let folder = ".raymond/runs/r/definition";
    let blocked = format!("rm -r {folder}; touch {folder}; echo '<goto>NEXT</goto>'");
    let project = Project::of(&[
        ("wf/START.sh", blocked.as_str()),
        ("wf/NEXT.sh", "echo '<result>done</result>'"),
    ]);
    project.raymond("run wf --run-id r").mentions(
        7,
        &[
            "could not write ",
            "/definition/",
            "the records are safe; to continue: raymond resume r",
        ],
    );
    fs::remove_file(project.path(folder)).unwrap();
    project.raymond("resume r").prints("done\n");
}
