//! Damaged and foreign journals: reported, never repaired silently, never lost.

use rustix::process::Signal;

use crate::harness::{Project, until};

/// A run of four records that failed at its last state.
fn failed() -> Project {
    let project = Project::of(&[
        ("wf/START.sh", "echo x >> log; echo '<goto>TWO</goto>'"),
        ("wf/TWO.sh", "echo x >> log; echo '<goto>THREE</goto>'"),
        ("wf/THREE.sh", "test -e ready && echo '<result>done</result>'"),
    ]);
    project.raymond("run wf --run-id r --quiet").mentions(1, &[]);
    project
}

const JOURNAL: &str = ".raymond/runs/r/journal.jsonl";

/// Flips a bit in the middle of a line, which is record `seq`; returns where the line starts.
fn flip(project: &Project, seq: usize) -> usize {
    let mut bytes = std::fs::read(project.path(JOURNAL)).unwrap();
    let starts: Vec<usize> = std::iter::once(0)
        .chain(bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1))
        .collect();
    bytes[usize::midpoint(starts[seq], starts[seq + 1])] ^= 1;
    project.write(JOURNAL, &bytes);
    starts[seq]
}

// proves: P8, S18
#[test]
fn run_continues_from_records_before_the_damage() {
    let project = failed();
    let offset = flip(&project, 3);
    let damaged = std::fs::read(project.path(JOURNAL)).unwrap();
    let what = format!(
        "record 3 at byte {offset} is damaged (its checksum is wrong); 2 good records before it"
    );
    let refusal = format!(
        "raymond: {what} in /project/{JOURNAL}
        hint: `raymond resume r --truncate-to 2` continues after the good records and moves the rest aside"
    );
    for command in ["resume r", "resume r --plan", "stop r", "cancel r"] {
        project.raymond(command).says(7, &refusal);
    }
    project.raymond("why r").says(0, "").prints(&format!(
        "interrupted: its journal is damaged: {what}\n→ raymond resume r --truncate-to 2\n"
    ));
    let seen = project.raymond("status r");
    assert!(seen.stdout.contains("  → raymond resume r --truncate-to 2\n"), "{seen:?}");
    for command in ["show r", "logs r", "cost r"] {
        let note = format!("r: showing only the records before the damage: {what}");
        project.raymond(command).says(0, &note);
    }
    project.raymond("resume r --truncate-to 4").says(
        2,
        &format!(
            "raymond: could not rewind /project/{JOURNAL} to record 4: its last good record is 2
            hint: `raymond resume r --truncate-to 2` keeps all good records"
        ),
    );
    assert_eq!(std::fs::read(project.path(JOURNAL)).unwrap(), damaged, "nothing was touched");
    project.write("ready", "");
    project.raymond("resume r --truncate-to 2").prints("done\n").mentions(
        0,
        &[
            "raymond: moved the discarded records to /project/.raymond/runs/r/journal.discarded-2\n",
            "r: reused 1 turn ($0.00), continuing 0, repeating 1\n",
        ],
    );
    let rest = std::fs::read(project.path(".raymond/runs/r/journal.discarded-2")).unwrap();
    assert_eq!(rest, damaged[offset..]);
    assert_eq!(project.read("log"), "x\nx\nx\n", "the second state ran again, the first did not");
}

#[test]
fn rewind_to_the_last_record_changes_nothing() {
    let project = Project::of(&[("wf/START.sh", "echo '<result>x</result>'")]);
    project.raymond("run wf --run-id r").prints("x\n");
    let journal = project.read(JOURNAL);
    let last = journal.lines().count() - 1;
    project.raymond(&format!("resume r --truncate-to {last}")).prints("x\n").mentions(0, &[]);
    assert_eq!(project.read(JOURNAL), journal);
}

#[test]
fn damage_after_the_end_of_run_is_discarded() {
    let project = Project::of(&[("wf/START.sh", "echo '<result>x</result>'")]);
    project.raymond("run wf --run-id r").prints("x\n");
    let journal = project.read(JOURNAL);
    project.write(JOURNAL, format!("{journal}garbage\n"));
    let next_command =
        project.raymond("why r --json").json()["next_command"].as_str().unwrap().to_owned();
    assert!(next_command.contains("--truncate-to"), "{next_command}");
    project.raymond(next_command.strip_prefix("raymond ").unwrap()).prints("x\n").mentions(0, &[]);
    project.raymond("why r").mentions(0, &[]);
    assert_eq!(project.raymond("status r --json").json()["status"], "completed");
}

#[test]
fn first_record_of_a_run_cannot_be_discarded() {
    let project = failed();
    let whole = std::fs::read(project.path(JOURNAL)).unwrap();
    project.raymond("resume r --truncate-to 0").says(
        2,
        "raymond: --truncate-to 0 would discard the whole run: record 1 starts it
        hint: start a new run with `raymond run`",
    );
    assert_eq!(std::fs::read(project.path(JOURNAL)).unwrap(), whole, "nothing was touched");
    let offset = flip(&project, 1);
    let damaged = std::fs::read(project.path(JOURNAL)).unwrap();
    let what = format!(
        "record 1 at byte {offset} is damaged (its checksum is wrong); 0 good records before it"
    );
    let hint =
        "hint: no record of it is readable; start a new run under another id with `raymond run`";
    for command in ["resume r", "resume r --plan", "stop r", "cancel r"] {
        project.raymond(command).says(7, &format!("raymond: {what} in /project/{JOURNAL}\n{hint}"));
    }
    project.raymond("resume r --truncate-to 1").says(
        2,
        &format!(
            "raymond: could not rewind /project/{JOURNAL} to record 1: its last good record is 0
            {hint}"
        ),
    );
    project.raymond("why r").says(0, "").prints(&format!(
        "interrupted: its journal is damaged: {what}
→ restore the journal from a copy, or start a new run\n"
    ));
    let status = project.raymond("status r").stdout;
    assert!(status.contains("  spent at least $0.00 of "), "{status}");
    project.raymond("list").says(0, "r: unreadable; see `raymond status r`").prints("");
    project.raymond("run wf --run-id r").mentions(2, &["run r already exists"]);
    project.raymond("status").mentions(2, &["could not read any run of this project"]);
    assert_eq!(std::fs::read(project.path(JOURNAL)).unwrap(), damaged, "nothing was touched");
}

#[test]
fn leftover_processes_with_damaged_journal_can_be_ended() {
    for command in ["stop r", "cancel r"] {
        let project = Project::of(&[
            ("wf/START.sh", "echo '<goto>TWO</goto>'"),
            ("wf/TWO.sh", "echo x >> log; exec sleep 600"),
        ]);
        let running = project.start("run wf --run-id r");
        until("the second script runs", || !project.read("log").is_empty());
        running.signal(Signal::KILL);
        running.wait();
        flip(&project, 2);
        let list = project.raymond("list").stdout;
        assert!(
            list.contains("its journal is damaged: ") && list.contains("; 1 left running\n"),
            "{list}"
        );
        let damage = "its checksum is wrong); 1 good record before it";
        project.raymond("cost r").mentions(0, &["only the records before the damage", damage]);
        project.raymond(command).mentions(7, &["ended a leftover process", damage]);
        assert_eq!(project.processes("r"), [0; 0], "{command}");
    }
}

#[test]
fn rewind_is_recorded_even_without_resume() {
    let project = failed();
    project.write("wf/THREE.sh", "echo '<result>edited</result>'");
    project.raymond("resume r --truncate-to 4").mentions(2, &["states changed since r started"]);
    assert_eq!(project.events("r", "run_rewound").len(), 1);
    project.raymond("resume r --plan --truncate-to 3").mentions(2, &["cannot be used with"]);
}

// proves: P8
#[test]
fn torn_last_line_is_discarded_with_a_copy() {
    let project = failed();
    let whole = std::fs::read(project.path(JOURNAL)).unwrap();
    project.write(JOURNAL, &whole[..whole.len() - 20]);
    project.write("ready", "");
    project.raymond("resume r").prints("done\n").mentions(
        0,
        &[
            "raymond: record 4 is incomplete and was discarded; a copy is in \
             /project/.raymond/runs/r/journal.torn-4\n",
            "THREE.sh: was interrupted when its owner died",
        ],
    );
}

// proves: P8
#[test]
fn foreign_journal_is_rejected() {
    let check = |content: &dyn Fn(&Project) -> String, message: &str| {
        let project = failed();
        let content = content(&project);
        project.write(JOURNAL, &content);
        project.raymond("resume r").says(7, message);
        project.raymond("status r").says(7, message);
        assert_eq!(project.read(JOURNAL), content, "nothing was touched");
    };
    let elsewhere = "hint: another file has replaced it: restore it from a copy";
    check(
        &|_| "hello world\n".to_owned(),
        &format!(
            "raymond: this is not the journal of a run: expected value at line 1 column 1\n{elsewhere}"
        ),
    );
    check(
        &|project| project.read(JOURNAL).replace("\"format\":1", "\"format\":99"),
        "raymond: the journal has format 99, but this release reads only up to 1
        hint: use the release that wrote it, or a later one",
    );
    check(
        &|project| {
            project.raymond("run wf --run-id other --quiet");
            project.read(".raymond/runs/other/journal.jsonl")
        },
        &format!("raymond: the journal of r belongs to the run other\n{elsewhere}"),
    );
    check(
        &|project| project.read(JOURNAL).replacen("\"nonce\":\"", "\"nonce\":\"0", 1),
        &format!(
            "raymond: record 0 at byte 0 is damaged (its checksum is wrong); 0 good records before it in /project/{JOURNAL}
            hint: restore the journal from a copy: its first line names the run"
        ),
    );
}
