//! Private file systems for tests, in a mount namespace.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use raymond_testkit::private_command::private_command;
use raymond_testkit::tally;

use crate::harness::Project;

/// The variable that marks a test inside of its namespace.
const INSIDE: &str = "RAYMOND_TEST_MOUNTS";

/// Runs the test of this name (`disks::full_disk…`) again in a new mount namespace, where it calls
/// `act`. If namespaces are not permitted, prints that and checks nothing.
#[expect(clippy::print_stderr, reason = "what was not run must be known")]
#[track_caller]
pub(crate) fn in_private(name: &str, act: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return act();
    }
    let private = ["--mount", "--propagation", "private"];
    // The test itself is the program, and makes a home for each of its projects.
    let unshare = || private_command("unshare", Path::new("/nowhere"));
    let tried = unshare().args(private).arg("true").stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("not run: {name}: no mount namespace can be made here");
        tally::count("disks", "tests not run: no mount namespace can be made here", 1);
        return;
    }
    let mut again = unshare();
    again.args(private).arg(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--include-ignored", "--nocapture", "--test-threads=1"]);
    let status = again.env(INSIDE, "1").status().unwrap();
    assert!(status.success(), "{name} failed in a namespace of its own: {status}");
}

/// Mounts something over a folder of the project, in the namespace of the test.
#[track_caller]
pub(crate) fn mount(project: &Project, folder: &str, words: &[&str]) {
    let target = project.path(folder);
    fs::create_dir_all(&target).unwrap();
    let words: Vec<&str> = words.iter().copied().chain(target.to_str()).collect();
    let output = project.spawn("mount", &words).wait();
    assert_eq!(output.code(), 0, "{output:?}");
}
