//! Changes of the working directory by replies, and refused changes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

/// Creates a working directory with a file `old`, a directory `dir` and a link `out` to a directory
/// beside it.
fn scheduler() -> tempfile::TempDir {
    let scheduler = tempfile::tempdir().unwrap();
    let work = scheduler.path().join("work");
    fs::create_dir_all(work.join("dir")).unwrap();
    fs::create_dir(scheduler.path().join("outside")).unwrap();
    fs::write(work.join("old"), "before").unwrap();
    symlink("../outside", work.join("out")).unwrap();
    symlink("../nowhere", work.join("lost")).unwrap();
    scheduler
}

/// Returns every file below a directory with its text; links are not followed.
fn files(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let below = files(&entry.path()).into_iter();
            found.extend(below.map(|(below, text)| (format!("{name}/{below}"), text)));
        } else if entry.file_type().unwrap().is_file() {
            found.push((name, fs::read_to_string(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn repeated_reply_writes_the_same_files() {
    let check = async |yaml: &str, expected: &[(&str, &str)], answer: Answer| {
        let scheduler = scheduler();
        let client = client(&format!("A: {yaml}"));
        for attempt in 1..3 {
            let mut request = request("main", "A.md", 1, 1);
            request.started.attempt = attempt;
            request.cwd = scheduler.path().join("work");
            assert_eq!(ask(&client, request).await, answer, "{yaml}");
            let whole = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
            let expected: Vec<_> = expected.iter().map(whole).collect();
            assert_eq!(files(&scheduler.path().join("work")), expected, "{yaml}");
            assert_eq!(files(&scheduler.path().join("outside")), [], "{yaml}");
        }
    };
    let old = ("old", "before");
    let done = || replied("x", 0);
    check("{ text: x, write: { new: a, old: b } }", &[("new", "a"), ("old", "b")], done()).await;
    check("{ text: x, write: { a/b/c: d } }", &[("a/b/c", "d"), old], done()).await;
    check("{ text: x, write: { old: null, none: null } }", &[], done()).await;
    check("{ text: x, write: { dir/e: '' } }", &[("dir/e", ""), old], done()).await;
    check("{ text: x, write: { a: b }, expect: patch }", &[old], {
        let key = "main / A.md / visit 1 / turn 1";
        not_started(
            &format!("{key} expects \"patch\" in the prompt, which is \"Look at the diff.\""),
            0,
        )
    })
    .await;
    let why = "scripted task failure".to_owned();
    let fails = failed(TurnFailure::Task { why }, Cost::Reported(Micros::ZERO));
    check("{ fail: task, write: { a: b } }", &[("a", "b"), old], fails).await;
}

#[tokio::test]
async fn failed_write_fails_the_turn_by_name() {
    let scheduler = scheduler();
    let work = scheduler.path().join("work");
    let check = async |writes: &str, expected: &str| {
        let client = client(&format!("A: {{ text: x, write: {writes} }}"));
        let mut request = request("main", "A.md", 1, 1);
        request.cwd.clone_from(&work);
        let found = ask(&client, request).await;
        let expected = expected.replace("HERE", work.to_str().unwrap());
        assert_eq!(found, task(&expected, 0), "{writes}");
    };
    let out = "a link leads out of the agent's working directory";
    check("{ out/a: b }", &format!("the reply cannot write \"out/a\" in HERE: {out}")).await;
    check("{ out: b }", &format!("the reply cannot write \"out\" in HERE: {out}")).await;
    let none = "No such file or directory (os error 2)";
    check("{ lost: b }", &format!("the reply cannot write \"lost\" in HERE: {none}")).await;
    let is = "Is a directory (os error 21)";
    check("{ dir: b }", &format!("the reply cannot write \"dir\" in HERE: {is}")).await;
    check("{ dir: ~ }", &format!("the reply cannot remove \"dir\" in HERE: {is}")).await;
    assert_eq!(files(&scheduler.path().join("outside")), []);
}

#[test]
fn invalid_writes_are_mistakes() {
    let mapping = "expected a mapping from paths to texts, found";
    mistaken("A: { text: x, write: y }", &[&format!("r.yaml:1:22: error: {mapping} text")]);
    mistaken("A: { text: x, write: {} }", &["r.yaml:1:22: error: an empty mapping writes nothing"]);
    mistaken(
        "A:\n  text: x\n  write:\n    /etc/a: b\n    ../c: d\n    e/../f: g\n    a//b: [h]\n    ./i: j\n    k/: l\n    m: 7\n",
        &[
            "r.yaml:4:5: error: \"/etc/a\" is absolute: paths are relative to the agent's working \
             directory",
            "r.yaml:5:5: error: \"../c\" leaves the agent's working directory",
            "r.yaml:6:5: error: \"e/../f\" leaves the agent's working directory",
            "r.yaml:7:5: error: \"a//b\" is not the path of a file, such as src/main.rs",
            "r.yaml:7:11: error: expected text, or null to remove the file, found a list",
            "r.yaml:8:5: error: \"./i\" is not the path of a file, such as src/main.rs",
            "r.yaml:9:5: error: \"k/\" is not the path of a file, such as src/main.rs",
            "r.yaml:10:8: error: expected text, or null to remove the file, found a number (quote it \
             to make it text)",
        ],
    );
    mistaken(
        "A: { text: x, write: { a: b, a: c } }",
        &["r.yaml:1:30: error: duplicate mapping key: a"],
    );
    mistaken(
        "A: { write: { a: b } }",
        &["r.yaml:1:4: error: a reply has exactly one of text, messages, fail, hang and capped"],
    );
}

#[tokio::test]
async fn a_pipe_is_not_written_to() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let scheduler = scheduler();
    mknodat(CWD, scheduler.path().join("work/pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let client = client("START: { text: x, write: { pipe: x } }");
    let mut request = request("main", "START", 1, 1);
    request.cwd = scheduler.path().join("work");
    let answer = format!("{:?}", ask(&client, request).await);
    assert!(answer.contains("the path exists but is not a regular file"), "{answer}");
}
