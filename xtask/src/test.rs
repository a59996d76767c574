//! The lanes of `cargo xtask test`: parts of the tests that need different programs or a different
//! time.
//!
//! A lane is skipped only by naming others. The machine is checked for all wanted lanes first, so
//! that a missing program does not show up late. `rules` contains every test that needs nothing but
//! the toolchain and a few common programs.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::commands::{cargo, program, run, succeeds};
use crate::torture::{self, Length};
use crate::{clients, deny, instructions, mcp, openclaw, words};

/// A named part of the tests.
struct Lane {
    name: &'static str,
    what: &'static str,
    /// Checks that the machine has what only this lane needs.
    check: Option<fn() -> Result<()>>,
    run: fn() -> Result<()>,
}

const LANES: [Lane; 7] = [
    Lane { name: "rules", what: "every test of the workspace", check: None, run: rules },
    Lane {
        name: "deny",
        what: "bans, licences and sources of all dependencies",
        check: None,
        run: deny::deny,
    },
    Lane {
        name: "instructions",
        what: "the instructions that the hot paths take",
        check: Some(instructions::check_machine),
        run: || instructions::instructions(&[]),
    },
    Lane {
        name: "real",
        what: "the real agent clients, against a scripted model",
        check: Some(clients::check_machine),
        run: real,
    },
    Lane {
        name: "mcp",
        what: "real MCP clients, and the conformance suite",
        check: Some(mcp::check_machine),
        run: mcp,
    },
    Lane {
        name: "openclaw",
        what: "the plugin for OpenClaw, alone and in a real gateway",
        check: Some(openclaw::check_machine),
        run: openclaw::test,
    },
    Lane {
        name: "torture",
        what: "crashes, kills, faults, hostile input: the short version",
        check: None,
        run: torture,
    },
];

/// Runs the named lanes; all of them when none is named.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(crate) fn test(wanted: &[&str]) -> Result<()> {
    if let Some(unknown) = wanted.iter().find(|name| LANES.iter().all(|l| l.name != **name)) {
        let names = LANES.map(|lane| lane.name).join(", ");
        bail!("there is no lane {unknown:?}; there are {names}");
    }
    let is_wanted = |lane: &&Lane| wanted.is_empty() || wanted.contains(&lane.name);
    check_machine()?;
    // All checks come before the first lane: a missing program must not be found after an hour of
    // tests.
    for check in LANES.iter().filter(is_wanted).filter_map(|lane| lane.check) {
        check()?;
    }
    for lane in LANES.iter().filter(is_wanted) {
        let begun = Instant::now();
        eprintln!("==> {}: {}", lane.name, lane.what);
        (lane.run)()?;
        eprintln!("==> {} passed in {} s", lane.name, begun.elapsed().as_secs());
    }
    Ok(())
}

/// Script states need bash. The examples and pages that are played need the others, and `setsid`
/// makes daemons that have to be found again.
const PROGRAMS: [&str; 5] = ["bash", "git", "make", "jq", "setsid"];

fn check_machine() -> Result<()> {
    let there = |name: &&str| succeeds(program(name).arg("--version"));
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|name| !there(name)).collect();
    if !missing.is_empty() {
        bail!("the tests need programs that are not installed: {}", missing.join(", "));
    }
    Ok(())
}

fn has_nextest() -> bool {
    succeeds(&mut cargo(&["nextest", "--version"]))
}

fn rules() -> Result<()> {
    words::words(&[])?;
    run(&mut tests(&["--workspace"]))?;
    // nextest does not run documentation tests.
    run(&mut cargo(&["test", "--workspace", "--doc", "--quiet"]))
}

/// Runs the tests of some packages.
pub(crate) fn packages(names: &[&str]) -> Result<()> {
    let chosen: Vec<&str> = names.iter().flat_map(|name| ["-p", *name]).collect();
    run(&mut tests(&chosen))
}

fn tests(chosen: &[&str]) -> Command {
    let runner: &[&str] = if has_nextest() { &["nextest", "run"] } else { &["test"] };
    cargo(&[runner, chosen, &["--no-fail-fast"]].concat())
}

/// Every client is a second of work for a core, and some tests run four.
fn real() -> Result<()> {
    let clients = clients::install()?;
    run(ignored(&["--test", "real"], "3").env("RAYMOND_TEST_CLIENTS", clients))
}

/// The clients are heavy to start, and some tests start many.
fn mcp() -> Result<()> {
    let clients = mcp::install()?;
    run(ignored(&["--test", "mcp", "--test", "conformance"], "2").env("RAYMOND_TEST_MCP", clients))
}

/// Returns the command for the ignored tests of these files, `at_once` at a time. It selects them
/// from the whole workspace, because cargo would compile one package alone again with other
/// features.
fn ignored(files: &[&str], at_once: &str) -> Command {
    if has_nextest() {
        let nextest = ["nextest", "run", "--workspace", "--no-fail-fast", "--run-ignored", "only"];
        return cargo(&[&nextest[..], &["-j", at_once], files].concat());
    }
    let alone = ["--", "--ignored", "--test-threads", at_once];
    cargo(&[&["test", "--workspace"][..], files, &alone].concat())
}

fn torture() -> Result<()> {
    torture::torture(Length::Short, 1, &[])
}
