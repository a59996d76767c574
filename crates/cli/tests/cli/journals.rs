//! Journals that are not what was written: named, never repaired in silence, never lost.

use crate::harness::Project;

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

#[test]
fn a_damaged_record_is_named_and_the_good_ones_can_be_gone_on_with() {
    let project = failed();
    let offset = flip(&project, 3);
    let damaged = std::fs::read(project.path(JOURNAL)).unwrap();
    let what = format!(
        "record 3 at byte {offset} is damaged (its checksum is wrong); 2 good records before it"
    );
    let refusal = format!(
        "raymond: {what} in /project/{JOURNAL}
        hint: `raymond resume r --truncate-to 2` goes on after the good records, and moves the rest aside"
    );
    for command in ["resume r", "stop r", "cancel r"] {
        project.raymond(command).says(7, &refusal);
    }
    project.raymond("why r").says(0, "").prints(&format!(
        "interrupted: its journal is damaged: {what}\n→ raymond resume r --truncate-to 2\n"
    ));
    let seen = project.raymond("status r");
    assert!(seen.stdout.contains("  → raymond resume r --truncate-to 2\n"), "{seen:?}");
    project.raymond("resume r --truncate-to 4").says(
        2,
        &format!(
            "raymond: /project/{JOURNAL} cannot be cut after record 4: its last good record is 2
            hint: `raymond resume r --truncate-to 2` keeps all that is good"
        ),
    );
    assert_eq!(std::fs::read(project.path(JOURNAL)).unwrap(), damaged, "nothing was touched");
    project.write("ready", "");
    project.raymond("resume r --truncate-to 2").prints("done\n").mentions(
        0,
        &[
            "raymond: moved what was cut away to /project/.raymond/runs/r/journal.cut-2\n",
            "r: reused 1 turn ($0.00), continuing 0, repeating 1\n",
        ],
    );
    let rest = std::fs::read(project.path(".raymond/runs/r/journal.cut-2")).unwrap();
    assert_eq!(rest, damaged[offset..]);
    assert_eq!(project.read("log"), "x\nx\nx\n", "the second state ran again, the first did not");
}

#[test]
fn a_run_that_is_cut_back_has_a_new_nonce_even_when_it_is_not_resumed() {
    let project = failed();
    project.write("wf/THREE.sh", "echo '<result>edited</result>'");
    project.raymond("resume r --truncate-to 4").mentions(2, &["states changed since r started"]);
    assert_eq!(project.events("r", "run_rewound").len(), 1);
    project.raymond("resume r --plan --truncate-to 3").mentions(2, &["cannot be used with"]);
}

#[test]
fn a_torn_last_line_is_cut_and_kept() {
    let project = failed();
    let whole = std::fs::read(project.path(JOURNAL)).unwrap();
    project.write(JOURNAL, &whole[..whole.len() - 20]);
    project.write("ready", "");
    project.raymond("resume r").prints("done\n").mentions(
        0,
        &[
            "raymond: record 4 was never finished; it was cut off, and kept as \
             /project/.raymond/runs/r/journal.torn-4\n",
            "THREE.sh: was cut off when its owner died",
        ],
    );
}

#[test]
fn what_is_no_journal_of_this_run_is_refused() {
    let check = |content: &dyn Fn(&Project) -> String, message: &str| {
        let project = failed();
        let content = content(&project);
        project.write(JOURNAL, &content);
        project.raymond("resume r").says(7, message);
        project.raymond("status r").says(7, message);
        assert_eq!(project.read(JOURNAL), content, "nothing was touched");
    };
    let elsewhere = "hint: something else was put in its place: restore it from a copy";
    check(
        &|_| "hello world\n".to_owned(),
        &format!(
            "raymond: this is not a journal of a run: expected value at line 1 column 1\n{elsewhere}"
        ),
    );
    check(
        &|project| project.read(JOURNAL).replace("\"format\":1", "\"format\":99"),
        "raymond: the journal has format 99, and this release reads up to 1
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
        &|_| String::new(),
        &format!(
            "raymond: the journal /project/{JOURNAL} was never finished being created
            hint: nothing of it was recorded; start it anew"
        ),
    );
    check(
        &|project| project.read(JOURNAL).replacen("\"nonce\":\"", "\"nonce\":\"0", 1),
        &format!(
            "raymond: record 0 at byte 0 is damaged (its checksum is wrong); 0 good records before it in /project/{JOURNAL}
            hint: its first line names the run: restore it from a copy"
        ),
    );
}
