//! `cargo xtask check`: the inner loop, from an edit to an answer.
//!
//! It checks the format, the lints of changed crates, the words of changed files, the directions of
//! imports, the rules of `tidy`, and the tests of the crates that decide and record. Everything
//! else is for `cargo xtask test`.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Result;

use crate::commands::{cargo, program, root, run};
use crate::{modules, test, tidy, words};

/// Their tests take seconds, and most changes show there.
const TESTED: [&str; 3] = ["raymond-core", "raymond-store", "raymond-engine"];

pub(crate) fn check() -> Result<()> {
    let changed = changed_files()?;
    // The fastest check first: each step ends the command, so a mistake costs the least time.
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    let packages: BTreeSet<String> = changed.iter().filter_map(|file| package(file)).collect();
    if !packages.is_empty() {
        let chosen = packages.iter().flat_map(|name| ["-p", name.as_str()]);
        let lints = ["--all-targets", "--", "-D", "warnings"];
        run(cargo(&["clippy"]).args(chosen).args(lints))?;
    }
    let readable = changed.iter().map(String::as_str).filter(|file| words::is_readable(file));
    let readable: Vec<&str> = readable.collect();
    if !readable.is_empty() {
        words::words(&readable)?;
    }
    modules::modules()?;
    tidy::tidy()?;
    test::packages(&TESTED)
}

/// Files that differ from the last commit.
fn changed_files() -> Result<Vec<String>> {
    let output =
        // A rename would be one line with two names, and without `-uall` a new folder would be one
        // line.
        program("git").args(["status", "--porcelain", "--no-renames", "-uall"]).output()?;
    let listed = String::from_utf8(output.stdout)?;
    // Git lists a deleted file, which cannot be read.
    let exists = |file: &&str| root().join(file).exists();
    // The name is behind two letters of status and a blank.
    Ok(listed.lines().filter_map(|line| line.get(3..)).filter(exists).map(str::to_owned).collect())
}

/// The package that a file belongs to: the nearest manifest above it names one.
fn package(file: &str) -> Option<String> {
    let path = root().join(file);
    path.ancestors().skip(1).take_while(|above| **above != root()).find_map(|directory| {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).ok()?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some(name.trim_matches('"').to_owned())
    })
}
