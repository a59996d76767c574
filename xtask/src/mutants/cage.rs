//! Runs one test where a changed crate cannot do harm.
//!
//! A change of the code that ends processes may signal any process of this user, and a change of the code
//! that removes files may remove others. So every test of such a crate has a process table of its own,
//! a `/tmp` of its own, and can write nowhere else.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::results::Outcome;
use super::tree::{KILOBYTES, Tests};
use crate::commands::{program, root, succeeds};

/// `$1` stays writable. The shell stays the first process of the table, because it has to wait for orphans.
const CAGE: &str = "mount -t tmpfs tmpfs /tmp && mount --bind \"$1\" \"$1\" \
    && mount -o remount,bind,ro / && shift && \"$@\"";

/// One test, and what is asked of it.
pub(super) struct Trial<'t> {
    pub(super) tests: &'t Tests,
    /// The whole name of the test.
    pub(super) name: &'t str,
    pub(super) mutant: Option<usize>,
    /// Where the switches that are passed leave their numbers.
    pub(super) reached: &'t Path,
    pub(super) limit: Duration,
}

fn unshare() -> std::process::Command {
    let mut unshare = program("unshare");
    // Whoever is not root is root in a world of its own.
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0) {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    unshare
}

/// Fails where no cage can be made.
pub(super) fn check(home: &Path) -> Result<()> {
    ensure!(!root().starts_with("/tmp"), "the checkout must not be in /tmp: each test has its own");
    let built = succeeds(unshare().args(["sh", "-c", CAGE, "sh"]).arg(home).arg("true"));
    ensure!(built, "could not make a process table for each test: run as root, or allow `unshare`");
    Ok(())
}

impl Trial<'_> {
    /// How it went, and how long it took.
    pub(super) fn run(&self) -> Result<(Outcome, Duration)> {
        fs::create_dir_all(self.reached)?;
        let limits = format!("ulimit -v {KILOBYTES}; exec timeout --signal=KILL \"$0\" \"$@\"");
        let mut command = unshare();
        command.args(["sh", "-c", CAGE, "sh"]).arg(self.reached).args(["sh", "-c", &limits]);
        command.arg(self.limit.as_secs_f32().ceil().to_string()).arg(&self.tests.program);
        command.args(["--quiet", "--exact", self.name]).current_dir(&self.tests.folder);
        command.env("INSTA_UPDATE", "no").env("RUST_BACKTRACE", "0");
        command.env("PROPTEST_CASES", "32").env("PROPTEST_MAX_SHRINK_ITERS", "0");
        match self.mutant {
            Some(number) => command.env("RAYMOND_MUTANT", number.to_string()),
            None => command.env("RAYMOND_REACHED", self.reached),
        };
        let began = Instant::now();
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        let outcome = match status.code() {
            Some(0) => Outcome::Survived,
            // `timeout` had to kill it.
            Some(137) | None => Outcome::Hung,
            Some(_) => Outcome::Caught,
        };
        Ok((outcome, began.elapsed()))
    }
}
