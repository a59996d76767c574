//! Workflows with mistakes: all mistakes are reported before anything is created.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::harness::Project;

const GOOD: &str = "echo '<result>x</result>'";

/// Checks that a workflow is rejected: exit 2, this text, and no files.
#[track_caller]
fn refused(files: &[(&str, &str)], stderr: &str) {
    let project = Project::of(files);
    project.raymond("run wf").says(2, stderr).prints("");
    assert!(!project.path(".raymond").exists());
}

#[test]
fn workflow_needs_exactly_one_entry() {
    refused(
        &[("wf/OTHER.sh", GOOD), ("wf/START.txt", "")],
        "wf: error: there is no entry state 1_START or START: found OTHER.sh [no-entry]
        hint: add START.md, or name the state to start with (not in an archive)
        raymond: the workflow has a mistake",
    );
    refused(
        &[("wf/notes.txt", "")],
        "wf: error: there is no entry state 1_START or START: there are no states at all [no-entry]
        hint: add START.md, or name the state to start with (not in an archive)
        raymond: the workflow has a mistake",
    );
    refused(
        &[("wf/START.sh", GOOD), ("wf/1_START.sh", GOOD)],
        "wf: error: there are several entry states: 1_START.sh, START.sh [several-entries]
        hint: keep one of them, or name the state to start with (not in an archive)
        raymond: the workflow has a mistake",
    );
}

#[test]
fn all_frontmatter_mistakes_are_reported_with_position() {
    refused(
        &[
            (
                "wf/START.md",
                "---
modell: x
budget: -3
max_visits: many
allowed_tags: [gotoo]
allowed_targets:
  goto: [NOPE, ../OTHER]
---
go",
            ),
            ("wf/OTHER.md", "---\nkey: [\n---\ngo"),
        ],
        "wf/OTHER.md:2:6: error: the frontmatter is not YAML: unclosed bracket '[' [invalid-yaml]
        wf/START.md:2:1: error: unknown key `modell` [unknown-key]
        hint: did you mean `model`?
        wf/START.md:3:9: error: `budget`: \"-3\" is negative; an amount of dollars is zero or more [bad-amount]
        wf/START.md:4:13: error: `max_visits` must be a whole number, found a text [wrong-type]
        wf/START.md:5:16: error: an entry of `allowed_tags` must be a tag, but \"gotoo\" is not a tag [unknown-tag]
        hint: did you mean `goto`?
        wf/START.md:7:10: error: there is no state \"NOPE\" [unknown-state]
        wf/START.md:7:16: error: a target in `allowed_targets.goto` is a file name, and \"../OTHER\" is not one: it holds a slash [bad-name]
        raymond: the workflow has 7 mistakes",
    );
}

#[test]
fn prompts_are_text_and_not_empty() {
    let project = Project::of(&[("wf/EMPTY.md", " \n"), ("wf/FRONT.md", "---\nmodel: x\n---\n")]);
    project.write("wf/START.md", b"caf\xe9");
    project.raymond("run wf").says(
        2,
        "wf/EMPTY.md: error: the prompt is empty: there is nothing to send [empty-prompt]
        wf/FRONT.md: error: the prompt is empty: there is nothing to send [empty-prompt]
        wf/START.md:1:4: error: the prompt is not UTF-8: byte 3 cannot be read [not-utf8]
        raymond: the workflow has 3 mistakes",
    );
}

#[test]
fn links_out_of_the_scope_are_ignored() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<goto>EVIL</goto>'"),
        ("outside.sh", "echo '<result>outside</result>'"),
    ]);
    std::os::unix::fs::symlink("../outside.sh", project.path("wf/EVIL.sh")).unwrap();
    project.raymond("run wf --run-id r").prints("").says(
        1,
        "wf/EVIL.sh: warning: the link leads out of the scope, to /project/outside.sh; it is not used as a state [link-leaves-scope]
        r: cap $10.00 · 4 at a time · 1 state pinned
        main             starts at START.sh
        main             START.sh: failed: <goto>: there is no state \"EVIL\" (the states are START.sh)
        failed: main failed at START.sh
        look     raymond why r · raymond show r · raymond logs r
        spent $0.00 of $10.00; to continue, first fix START.sh or what it needs, then: raymond resume r --with-current",
    );
    project.raymond("run wf/EVIL.sh").says(
        2,
        "raymond: /project/wf/EVIL.sh leads to /project/outside.sh, outside its directory",
    );
}

#[test]
fn other_files_are_not_workflows() {
    let project = Project::of(&[("a.yaml", ""), ("flow.json", "{}"), ("wf/README.md", "hello")]);
    let check = |path: &str, message: &str| {
        project.raymond(&format!("run {path}")).says(2, &format!("raymond: {message}"));
    };
    check(
        "a.yaml",
        "a.yaml is not a workflow: expected a directory, a .zip, a state (.md, .sh, .bat, .ps1), or a document of steps (.json)",
    );
    check("wf/README.md", "wf/README.md is not a state: a README describes a workflow");
    project.raymond("run flow.json").says(
        2,
        "flow.json:1:1: error: a workflow needs the key `steps` [missing_key]
        raymond: the document has a mistake",
    );
}

#[test]
fn bad_transition_of_script_fails_its_agent() {
    let check = |script: &str, reason: &str| {
        let project = Project::of(&[("wf/START.sh", script), ("wf/DONE.sh", GOOD)]);
        project.raymond("run wf --run-id r").says(
            1,
            &format!(
                "r: cap $10.00 · 4 at a time · 2 states pinned
                main             starts at START.sh
                main             START.sh: failed: {reason}
                failed: main failed at START.sh
                look     raymond why r · raymond show r · raymond logs r
                spent $0.00 of $10.00; to continue, first fix START.sh or what it needs, then: raymond resume r --with-current"
            ),
        );
        assert_eq!(project.raymond("status r --json").json()["status"], "failed");
    };
    check(
        "echo '<goto>DON</goto>'",
        "<goto>: there is no state \"DON\"; did you mean \"DONE.sh\"? (the states are DONE.sh, START.sh)",
    );
    check(
        "echo '<goto>../x/DONE</goto>'",
        "<goto>: a target is a file name, and \"../x/DONE\" is not one: it holds a slash \
         (the states are DONE.sh, START.sh)",
    );
    check("echo '<call>DONE</call>'", "malformed <call>: attribute `return` is missing");
    check(
        "echo '<function>DONE</function>'",
        "malformed <function>: attribute `return` is missing",
    );
    check("echo '<fork>DONE</fork>'", "malformed <fork>: attribute `next` is missing");
    check("echo '<reset cd=\"/nowhere\">DONE</reset>'", "<reset>: no directory \"/nowhere\"");
    check(
        "echo hello",
        "no tag: the output ends with \"hello\"; write <goto>STATE</goto> or <result>YOUR RESULT</result>",
    );
}

#[test]
fn budget_is_an_amount_or_none() {
    let project = Project::of(&[("wf/START.sh", GOOD)]);
    let check = |budget: &str, message: &str| {
        project.raymond(&format!("run wf --budget {budget}")).mentions(2, &[message]);
    };
    check("-3", "\"-3\" is negative; an amount of dollars is zero or more, or none");
    check("0", "a budget of zero starts nothing; use an amount or `none`");
    check("much", "\"much\" is not an amount of dollars such as 10 or 2.50, or none");
    assert!(!project.path(".raymond").exists());
    project.raymond("run wf --budget none").mentions(0, &["no cap"]);
}

#[test]
fn bad_replies_are_rejected_before_run_is_created() {
    let project = Project::of(&[("wf/START.md", "go"), ("bad.yaml", "START: [\n")]);
    project.raymond("run wf --replies bad.yaml").says(
        2,
        "bad.yaml:1:8: error: unclosed bracket '[' [invalid-yaml]
        raymond: the file of replies has a mistake",
    );
    project.raymond("run wf --replies nope.yaml").says(
        2,
        "raymond: could not find the replies nope.yaml
        hint: name a file that exists: --replies FILE",
    );
    assert!(!project.path(".raymond").exists());
    project.write("bad.yaml", "STRAT: x\n");
    project.raymond("run wf --replies bad.yaml").says(
        2,
        "bad.yaml:1:1: error: no state is called \"STRAT\" [unknown-state]
        hint: did you mean \"START\"?
        raymond: the file of replies has a mistake",
    );
    assert!(!project.path(".raymond").exists());
    project.write("bad.yaml", "OTHER: x\n");
    project.raymond("run wf --replies bad.yaml").mentions(
        1,
        &[
            "bad.yaml:1:1: warning: no state is called \"OTHER\" [unknown-state]\n",
            "bad.yaml: warning: no reply for START, if it is reached [no-reply]\n",
            "START.md: failed: could not start: no reply for main / START.md / visit 1 / turn 1 in bad.yaml: add one under START",
        ],
    );
}

type Writer = ZipWriter<Cursor<Vec<u8>>>;

fn archive(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    write(&mut writer);
    writer.finish().unwrap().into_inner()
}

fn add(writer: &mut Writer, name: &str, bytes: &[u8]) {
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    writer.start_file(name, stored).unwrap();
    writer.write_all(bytes).unwrap();
}

#[test]
fn archive_runs_like_a_directory() {
    let project = Project::of(&[]);
    let bytes = archive(|writer| add(writer, "flow/START.sh", GOOD.as_bytes()));
    project.write("flow.zip", bytes);
    project.raymond("flow.zip --run-id r").prints("x\n").mentions(0, &["1 state pinned"]);
    std::fs::remove_file(project.path("flow.zip")).unwrap();
    project.raymond("resume r").prints("x\n");
}

// proves: P12, S10
#[test]
fn hostile_archives_are_rejected() {
    let of = |names: &[&str]| {
        archive(|writer| names.iter().for_each(|name| add(writer, name, GOOD.as_bytes())))
    };
    let check = |bytes: Vec<u8>, reason: &str| {
        let project = Project::of(&[]);
        project.write("evil.zip", bytes);
        let message = format!("raymond: could not use the archive evil.zip: {reason}");
        project.raymond("run evil.zip").says(2, &message);
        assert!(!project.path(".raymond").exists());
    };
    check(
        b"PK nonsense".to_vec(),
        "it is not a zip archive: invalid Zip archive: Could not find EOCD",
    );
    check(of(&[]), "it is empty");
    check(of(&["START.sh", "../x.sh"]), "\"../x.sh\" is a dotted path");
    check(of(&["START.sh", "/x.sh"]), "\"/x.sh\" is an absolute path");
    check(of(&["START.sh", "start.SH"]), "\"START.sh\" and \"start.SH\" are the same name");
    check(
        of(&["START.sh", "f/x.sh"]),
        "it is mixed: \"START.sh\" and \"f/x.sh\" are not in one folder",
    );
    check(of(&["f/g/START.sh"]), "it is nested: \"f/g/START.sh\" is more than one folder deep");
    let mut encrypted = of(&["START.sh"]);
    for (signature, flags) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let at = encrypted.windows(4).position(|four| four == signature).unwrap();
        encrypted[at + flags] |= 1;
    }
    check(encrypted, "\"START.sh\" is encrypted");
    let bomb = archive(|writer| {
        let fast = SimpleFileOptions::default().compression_level(Some(1));
        writer.start_file("START.sh", fast).unwrap();
        let zeros = vec![0; 1024 * 1024];
        (0..65).for_each(|_| writer.write_all(&zeros).unwrap());
    });
    assert!(bomb.len() < 1_000_000);
    check(bomb, "it unpacks to more than 64 MiB");
}

#[test]
fn typos_stop_a_run_before_it_starts() {
    refused(
        &[("wf/START.md", "---\nbuget: 0.50\n---\ngo")],
        "wf/START.md:2:1: error: unknown key `buget` [unknown-key]
        hint: did you mean `budget`?
        raymond: the workflow has a mistake",
    );
    let policy = "---\nallowed_transitions: [{tag: result, payload: \"YES\"}]\n---\ngo";
    refused(
        &[("wf/START.md", policy)],
        "wf/START.md:2:37: error: unknown key `payload` in `allowed_transitions` [unknown-key]
        hint: remove `payload`
        raymond: the workflow has a mistake",
    );
    let topic = Project::of(&[("wf/START.md", "about {{topic}}")]);
    topic.raymond("run wf --var tpoic=x").says(
        2,
        "wf: error: no state uses the variable `tpoic` [unused-variable]
        hint: did you mean `topic`?
        wf/START.md:1:7: warning: nothing sets {{topic}} [undefined-name]
        hint: did you mean {{tpoic}}?
        raymond: the workflow has a mistake",
    );
    assert!(!topic.path(".raymond").exists());
}

#[test]
fn names_that_nothing_sets_are_reported() {
    let prompt = "<fork next=\"NEXT\" item=\"1\">WORKER</fork>\nabout {{topci}}";
    let replies = "START: <fork next=\"NEXT\" itme=\"1\">WORKER</fork>\n'*': <result>x</result>";
    let project = Project::of(&[
        ("wf/START.md", prompt),
        ("wf/WORKER.md", "work on {{item}}"),
        ("wf/NEXT.md", "about {{topic}}"),
        ("r.yaml", replies),
    ]);
    project.raymond("run wf --var topic=x --replies r.yaml").mentions(
        0,
        &[
            "wf/START.md:2:7: warning: nothing sets {{topci}} [undefined-name]\n  hint: did you mean \
             {{topic}}?",
            // An attribute of a fork is known only when the worker runs.
            "nothing sets {{item}}; it stays in the prompt (did you mean {{itme}}?)",
        ],
    );
    let quiet = project.raymond("run wf --var topic=x --replies r.yaml --quiet");
    quiet.mentions(0, &["warning: nothing sets {{topci}}", "nothing sets {{item}}; it stays"]);
}
